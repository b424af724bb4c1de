//go:build race

package bus

const raceBuild = true
