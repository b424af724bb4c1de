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
	c.Title, c.X, c.Y = "Costs", "rows", "µs"
	grid := Grid{Title: "Costs (µs)", Head: []string{"rows", "a", "b"}, Rows: [][]any{{int64(1), 10.0, 20.0}, {int64(2), 11.0, nil}}}
	if got := c.grid(); !reflect.DeepEqual(got, grid) {
		t.Errorf("%+v, want %+v", got, grid)
	}
}
