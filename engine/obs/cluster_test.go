package obs

import "testing"

func TestRoleText(t *testing.T) {
	for want, n := range map[string]*ClusterNode{
		"not known": {}, "owner": {Role: RoleOwner, Fences: []uint64{7}, Seen: true}, "owner of 2": {Role: RoleOwner, Fences: []uint64{7, 0, 8}, Seen: true},
		"standby, drained": {Role: RoleStandby, Fences: []uint64{0, 0}, Drained: true, Seen: true}, "was owner of 1": {Role: RoleOwner, Fences: []uint64{0, 1}},
	} {
		if got := n.RoleText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestStanding(t *testing.T) {
	for want, s := range map[string]*Standing{
		"n2 is a standby of n1, at record 7":                           {Node: "n2", Role: RoleStandby, Owner: "n1", Index: 7},
		"n2 knows no owner of the journal, and is at record 7":         {Node: "n2", Role: RoleJoining, Index: 7},
		"n2 owns 1 of 3 partitions of the journal, and is at record 7": {Node: "n2", Role: RoleOwner, Partitions: 3, Owned: 1, Index: 7},
	} {
		if got := s.Standby(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, s := range []*Standing{nil, {Node: "n1", Role: RoleOwner, Owner: "n1"}, {Role: RoleOwner, Partitions: 3, Owned: 3}} {
		if got := s.Standby(); got != "" {
			t.Errorf("%+v is %q", s, got)
		}
	}
}
