package api

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ClampQuantities lowers amounts in lists, in place, with which nobody should reckon. The API server accepts
// 1e9999999, and whoever adds it to something else writes out ten million digits, for seconds.
func ClampQuantities(lists ...v1.ResourceList) {
	for _, list := range lists {
		for name, quantity := range list {
			if outOfRange(quantity) {
				list[name] = *resource.NewQuantity(MaxQuantity, resource.DecimalSI)
			}
		}
	}
}

// outOfRange tells without exact arithmetic whether an amount is above all that is reckoned with, by far.
func outOfRange(quantity resource.Quantity) bool {
	return quantity.AsApproximateFloat64() > 2*float64(MaxQuantity)
}
