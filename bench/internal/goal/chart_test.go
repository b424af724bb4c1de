package goal

import (
	"reflect"
	"testing"
)

func TestChart(t *testing.T) {
	var c Chart
	c.Add("a", 1, 10)
	c.Add("b", 1, 20)
	c.Add("a", 2, 11)
	want := []Line{{"a", []Point{{1, 10}, {2, 11}}}, {"b", []Point{{1, 20}}}}
	if !reflect.DeepEqual(c.Lines, want) {
		t.Errorf("%+v, want %+v", c.Lines, want)
	}
}
