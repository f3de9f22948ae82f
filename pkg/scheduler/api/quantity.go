// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// amount compares before it converts, because what an int64 cannot hold converts to anything.
func amount(dimension int, quantity resource.Quantity) int64 {
	most := MaxQuantity
	if dimension == CPU {
		most /= 1000
	}
	switch {
	case quantity.Sign() <= 0:
		return 0
	case outOfRange(quantity), quantity.CmpInt64(most) > 0:
		return MaxQuantity
	case dimension == CPU:
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// Quantity is the inverse of Vector for one dimension.
func Quantity(dimension int, n int64) resource.Quantity {
	switch dimension {
	case CPU:
		return *resource.NewMilliQuantity(n, resource.DecimalSI)
	case Memory, EphemeralStorage:
		return *resource.NewQuantity(n, resource.BinarySI)
	}
	return *resource.NewQuantity(n, resource.DecimalSI)
}

// amountText words an amount without its name, and without the decimal suffixes of quantities:
// people count 1000 cpu, not 1k.
func amountText(i int, n int64) string {
	switch {
	case i == Memory || i == EphemeralStorage:
		quantity := Quantity(i, n)
		return quantity.String()
	case i == CPU && n%1000 != 0:
		return strconv.FormatInt(n, 10) + "m"
	case i == CPU:
		return strconv.FormatInt(n/1000, 10)
	}
	return strconv.FormatInt(n, 10)
}
