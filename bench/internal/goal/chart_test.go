package goal

import (
	"encoding/json"
	"reflect"
	"testing"

	"trunkline/cmd/trunkline/loadgen/chart"
)

func TestChart(t *testing.T) {
	var c Chart
	c.Add("a", 1, 10)
	c.Add("b", 1, 20)
	c.Add("a", 2, 11)
	want := []Line{{"a", []chart.Point{{X: 1, Y: 10}, {X: 2, Y: 11}}}, {"b", []chart.Point{{X: 1, Y: 20}}}}
	if !reflect.DeepEqual(c.Lines, want) {
		t.Errorf("%+v, want %+v", c.Lines, want)
	}
	text, err := json.Marshal(c.Lines[1])
	if want := `{"name":"b","points":[{"x":1,"y":20}]}`; err != nil || string(text) != want {
		t.Errorf("%s, want %s: %v", text, want, err)
	}
	c.Title, c.X, c.Y = "Costs", "rows", "µs"
	grid := Grid{Title: "Costs (µs)", Head: []string{"rows", "a", "b"}, Rows: [][]any{{int64(1), 10.0, 20.0}, {int64(2), 11.0, nil}}}
	if got := c.grid(); !reflect.DeepEqual(got, grid) {
		t.Errorf("%+v, want %+v", got, grid)
	}
}
