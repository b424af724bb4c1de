package placement_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"trunkline/engine/cluster/placement"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

// nodesOf returns nodes from text: names, with !for drained and =weight and @zone behind them.
func nodesOf(text string) (nodes []placement.Node) {
	for f := range strings.FieldsSeq(text) {
		var n placement.Node
		f, n.Drained = strings.CutSuffix(f, "!")
		f, n.Zone, _ = strings.Cut(f, "@")
		n.ID, f, _ = strings.Cut(f, "=")
		fmt.Sscan(f, &n.Weight)
		nodes = append(nodes, n)
	}
	return nodes
}

// assignmentOf returns an assignment from text: partitions divided by commas.
func assignmentOf(text string) (a placement.Assignment) {
	for part := range strings.SplitSeq(text, ",") {
		a = append(a, strings.Fields(part))
	}
	return a
}

func numbered(n int) (nodes []placement.Node) {
	for i := range n {
		nodes = append(nodes, placement.Node{ID: fmt.Sprintf("n%05d", i)})
	}
	return nodes
}

// TestPlans has what single plans do, as kind:partition:node:from>replicas.
func TestPlans(t *testing.T) {
	f := func(current, nodes string, o placement.Options, want string, pending ...placement.Move) {
		t.Helper()
		moves, err := placement.Plan(assignmentOf(current), pending, nodesOf(nodes), o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range moves {
			got = append(got, fmt.Sprintf("%s:%d:%s:%s>%s", [...]string{"", "promote", "switch", "copy", "drop"}[m.Kind], m.Partition, m.Node, m.From, strings.Join(m.To, " ")))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s on %s: %s\nwant %s", current, nodes, text, want)
		}
	}
	three, two, one := placement.Options{Replicas: 3}, placement.Options{Replicas: 2}, placement.Options{Replicas: 1}
	f("a b c, b c a, c a b", "a b c", three, "")
	f("a b c, b c a, c a b", "a b", three, "drop:0::>a b, drop:1::>b a, promote:2:a:c>a b")
	f("a b c, b c a, c a b", "", three, "")
	f("a b c, b c a, c a b", "a! b! c!", three, "")
	f("a b c, b c a, c a b", "a b! c", three, "switch:1:c:b>c a b, drop:0::>a c, drop:1::>c a, drop:2::>c a")
	f("a b c", "a! b c d", three, "switch:0:b:a>b c a, copy:0:d:a>")
	f("a b c", "a b c! d", three, "copy:0:d:c>")
	f("a b c", "a b c! d", three, "", placement.Move{Kind: placement.Copy, Node: "d", From: "c"})
	f("a b c", "b c! d", three, "promote:0:b:a>b c, copy:0:d:c>")
	f("a b c", "b c d", three, "promote:0:b:a>b c", placement.Move{Kind: placement.Copy, Node: "d"})
	f("a b c", "d e", two, "promote:0:e:a>e, copy:0:d:>")
	f("a b c", "d e", two, "promote:0:d:a>d, copy:0:e:>", placement.Move{Kind: placement.Copy, Node: "d"})
	f("a b", "a@x b@x c@y", two, "copy:0:c:b>")
	f("a b c", "a@x b@x c@y d@x", two, "drop:0::>a c")
	f("a b, a b, a b, a b", "a b", two, "switch:0:b:a>b a, switch:1:b:a>b a")
	f("a b, a b, a b, a b", "a b", placement.Options{Replicas: 2, MaxMoves: 1}, "switch:0:b:a>b a")
	f("a b, a b, a b, a b", "a b=3", two, "switch:0:b:a>b a, switch:1:b:a>b a, switch:2:b:a>b a")
	f("a b, a b, b c", "a b c", placement.Options{Replicas: 2}, "switch:2:c:b>c b, switch:0:b:a>b a, copy:1:c:b>")
	f("a, a", "a b", one, "copy:0:b:>")
	f("a b, a", "a b", one, "switch:0:b:a>b a, drop:0::>b")
	f(",", "a b", two, "promote:0:b:>b, promote:1:a:>a, copy:0:a:>, copy:1:b:>")
	f("a b c d e f g h i j", "a! b! c! d! e! f! g! h! i! j! k!", one, "")
	f("a b c d e f g h i j", "a b! c! d! e! f! g! h! i! j! k!", one, "drop:0::>a")
	f("a b c d e f g h i j k", "a b! c! d! e! f! g! h! i! j! k! l", one, "drop:0::>a b c d e f g h i j, drop:0::>a")
	f("a b c d e f g h i j k", "b! c! d! e! f! g! h! i! j! k! l", one, "promote:0:l:a>l b c d e f g h i j")
	f("a, a, a", "a! b", placement.Options{Replicas: 1, MaxCopiesPerNode: 2}, "copy:0:b:>, copy:1:b:>")
	f("a, a, a", "a! b", placement.Options{Replicas: 1, MaxCopiesPerNode: 2}, "copy:0:b:>, copy:1:b:>",
		placement.Move{Kind: placement.Switch, Partition: 2, Node: "b"}, placement.Move{Kind: placement.Copy, Partition: 2, Node: "gone"}, placement.Move{Kind: placement.Copy, Partition: 2, Node: "a"})
}

func TestApply(t *testing.T) {
	before := assignmentOf("a b c, b c a, c a b")
	got := placement.Apply(before, []placement.Move{
		{Partition: 0, Kind: placement.Copy, Node: "d", From: "c"}, {Partition: 1, Kind: placement.Copy, Node: "d", From: "b"},
		{Partition: 2, Kind: placement.Copy, Node: "a", From: "gone"}, {Partition: 0, Kind: placement.Switch, Node: "b", To: placement.Replicas{"b", "a"}},
	})
	if want := assignmentOf("b a, b c a d, c a b"); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(before, assignmentOf("a b c, b c a, c a b")) {
		t.Errorf("%v from %v, want %v", got, before, want)
	}
}

func TestLimitsOfPlans(t *testing.T) {
	f := func(ok bool, current placement.Assignment, nodes []placement.Node, change func(*placement.Options)) {
		t.Helper()
		o := placement.DefaultOptions()
		if change != nil {
			change(&o)
		}
		_, err := placement.Plan(current, nil, nodes, o)
		if (err == nil) != ok {
			t.Errorf("plan: %v", err)
		}
	}
	none := make(placement.Assignment, 1)
	f(true, none, []placement.Node{{ID: "a", Weight: placement.MaxWeight}}, nil)
	f(false, none, []placement.Node{{ID: "a", Weight: placement.MaxWeight + 1}}, nil)
	f(false, none, nodesOf("a b=-1"), nil)
	f(false, none, nodesOf("a b a"), nil)
	f(false, none, []placement.Node{{}}, nil)
	f(true, none, numbered(placement.MaxNodes), nil)
	f(false, none, numbered(placement.MaxNodes+1), nil)
	f(true, none, nodesOf("a"), func(o *placement.Options) { o.Replicas = placement.MaxReplicas })
	f(false, none, nodesOf("a"), func(o *placement.Options) { o.Replicas = placement.MaxReplicas + 1 })
	f(false, none, nodesOf("a"), func(o *placement.Options) { o.Replicas = 0 })
	f(true, none, nodesOf("a"), func(o *placement.Options) { o.Slack = placement.MaxSlack })
	f(false, none, nodesOf("a"), func(o *placement.Options) { o.Slack = placement.MaxSlack + 1 })
	f(false, none, nodesOf("a"), func(o *placement.Options) { o.Slack = -1 })
	f(false, none, nodesOf("a"), func(o *placement.Options) { o.MaxMoves = -1 })
	f(false, none, nodesOf("a"), func(o *placement.Options) { o.MaxCopiesPerNode = -1 })
	f(false, assignmentOf("a b a"), nodesOf("a"), nil)
	f(true, nil, nodesOf("a"), nil)
	f(false, make(placement.Assignment, placement.MaxPartitions+1), nodesOf("a"), nil)
	if _, err := placement.Plan(none, []placement.Move{{Partition: 1, Kind: placement.Copy, Node: "a"}}, nodesOf("a"), placement.DefaultOptions()); err == nil {
		t.Error("a move of a partition that is not there is taken")
	}
	for partitions, ok := range map[int]bool{0: false, 1: true, placement.MaxPartitions: true, placement.MaxPartitions + 1: false} {
		if _, err := placement.Place(partitions, nodesOf("a"), placement.DefaultOptions()); (err == nil) != ok {
			t.Errorf("%d partitions: %v", partitions, err)
		}
	}
	if _, err := placement.Place(1, nodesOf("a!"), placement.DefaultOptions()); err == nil {
		t.Error("a drained node is given something")
	}
}

// TestPlacementIsTheSameForEver: nodes of different versions plan together, so equal input has to
// give equal output in all of them. A change of these numbers is a change of the protocol.
func TestPlacementIsTheSameForEver(t *testing.T) {
	f := func(nodes string, partitions int, want uint64) {
		t.Helper()
		placed, err := placement.Place(partitions, nodesOf(nodes), placement.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if got := xxhash.Sum64String(fmt.Sprint(placed)); got != want {
			t.Errorf("%d partitions on %s: %#x, want %#x", partitions, nodes, got, want)
		}
	}
	f("a b c", 6, 0xcb6a3e8a92994b42)
	f("a@x b@y c@z d@x e@y f@z", 1000, 0x3193c65afba64132)
	f("a=1 b=2 c=3 d=4 e", 1000, 0x29d75b1950b2bc68)
}

// TestLoadIsEven: after a node has come or gone each node owns its share within the slack, no more
// copies are built than a node had or gets and some, and few partitions but those of a lost owner
// have another one.
func TestLoadIsEven(t *testing.T) {
	check(t, func(t *rapid.T) {
		nodes := numbered(rapid.IntRange(4, 14).Draw(t, "nodes"))
		partitions := rapid.IntRange(1, 300).Draw(t, "partitions")
		o := placement.Options{Replicas: rapid.IntRange(2, 3).Draw(t, "replicas"), Slack: 5}
		placed, err := placement.Place(partitions, nodes, o)
		if err != nil {
			t.Fatal(err)
		}
		goes := rapid.Bool().Draw(t, "goes")
		after, owned, kept := nodes[1:], 0, 0
		if !goes {
			placed, err = placement.Place(partitions, after, o)
			after = nodes
		}
		for _, r := range placed {
			for k, id := range r {
				if goes && id == nodes[0].ID {
					kept++
					if k == 0 {
						owned++
					}
				}
			}
		}
		if share := partitions*o.Replicas/len(nodes) + 1; !goes {
			kept, owned = share, partitions/len(nodes)+1
		}
		copies, changes := 0, 0
		for range 5 {
			moves, err := placement.Plan(placed, nil, after, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range moves {
				switch m.Kind {
				case placement.Copy:
					copies++
				case placement.Promote, placement.Switch:
					changes++
				}
			}
			placed = placement.Apply(placed, moves)
		}
		if copies > kept+kept/4+4 || changes > owned+owned/4+len(after) {
			t.Fatalf("%d copies for %d, %d other owners for %d: %d partitions on %d nodes, %+v", copies, kept, changes, owned, partitions, len(nodes), o)
		}
		has := map[string]int{}
		for _, r := range placed {
			has[r[0]]++
		}
		for _, n := range after {
			most, least := max((partitions+len(after)-1)/len(after), partitions*105/(100*len(after))), min(partitions/len(after), (partitions*95+100*len(after)-1)/(100*len(after)))
			if has[n.ID] > most || has[n.ID] < least {
				t.Fatalf("%s owns %d of %d, want %d to %d: %v", n.ID, has[n.ID], partitions, least, most, has)
			}
		}
	})
}
