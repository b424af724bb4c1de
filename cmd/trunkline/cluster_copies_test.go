package main

import (
	"testing"

	"trunkline/engine/obs"
)

func TestCopiesText(t *testing.T) {
	f := func(text string, whole bool, copies ...obs.ClusterCopy) {
		t.Helper()
		if got, is := copiesText(copies); got != text || is != whole {
			t.Errorf("%q, %v; want %q, %v", got, is, text, whole)
		}
	}
	f("", true)
	f("a to 7, b to 7", true, obs.ClusterCopy{Node: "a", Index: 7}, obs.ClusterCopy{Node: "b", Index: 7, Compared: true})
	f("a (damaged)", false, obs.ClusterCopy{Node: "a", Damage: "x"})
	f("a to 7, b (differs)", false, obs.ClusterCopy{Node: "a", Index: 7}, obs.ClusterCopy{Node: "b", Differs: true, Compared: true})
}
