package api

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Tame lowers amounts in lists, in place, with which nobody should reckon. The API server accepts
// 1e9999999, and whoever adds it to something else writes out ten million digits, for seconds.
func Tame(lists ...v1.ResourceList) {
	for _, list := range lists {
		for name, quantity := range list {
			if absurd(quantity) {
				list[name] = *resource.NewQuantity(MaxQuantity, resource.DecimalSI)
			}
		}
	}
}

// absurd tells without exact arithmetic whether an amount is above all that is reckoned with, by far.
func absurd(quantity resource.Quantity) bool {
	return quantity.AsApproximateFloat64() > 2*float64(MaxQuantity)
}
