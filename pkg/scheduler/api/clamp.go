// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ClampQuantities lowers amounts in lists that are out of range, in place. The API server accepts
// 1e9999999, and any addition to it expands ten million digits, which takes seconds.
func ClampQuantities(lists ...v1.ResourceList) {
	for _, list := range lists {
		for name, quantity := range list {
			if outOfRange(quantity) {
				list[name] = *resource.NewQuantity(MaxQuantity, resource.DecimalSI)
			}
		}
	}
}

// outOfRange reports, without exact arithmetic, whether an amount is far above MaxQuantity.
func outOfRange(quantity resource.Quantity) bool {
	return quantity.AsApproximateFloat64() > 2*float64(MaxQuantity)
}
