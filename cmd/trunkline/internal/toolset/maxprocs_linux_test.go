package toolset

import (
	"strings"
	"testing"
)

// crowdScript starts one process for each call and then answers, as one that makes embeddings as
// well.
const crowdScript = `while read -r line; do
	sleep 600 &
	case "$line" in *hang*) wait;; esac
	printf '{"status":"OK","output_json":"{}","error":"fine"}\n'
done
`

// TestMaxProcs: the environment bounds the processes of each worker, of the program that makes
// embeddings as well.
func TestMaxProcs(t *testing.T) {
	clean(t)
	root := t.TempDir()
	write(t, root, "w.sh", crowdScript)
	path := write(t, root, "m.json", manifestOf(worker("AID.KEPT.v1", "w.sh", ""),
		declare("AID.ONCE.v1", `,"exec":{"kind":"process","command":["sh","w.sh"],"mode":"oneshot"}`)))
	t.Setenv("MACHINA_EMBED_PROVIDER", "cmd")
	t.Setenv("MACHINA_EMBED_CMD", "sh w.sh")
	o := plain(path)
	o.Builtins, o.Root = true, root
	const kept, once, embed = "AID.KEPT.v1", "AID.ONCE.v1", "AID.EMBED.TEXT.v1"
	f := func(value, aid, text, want string) {
		t.Helper()
		t.Setenv(maxProcessesName, value)
		s := open(t, o)
		s.config(t)
		if got := s.run(aid, `{"inputs":{"text":"`+text+`"}}`); !strings.Contains(got, want) {
			t.Errorf("%s=%s: %s: %s, want %s", maxProcessesName, value, aid, got, want)
		}
	}
	f("1", kept, "hang", `"error":"toolhost exit 137: more than 1 processes"`)
	f("1", once, "hang", `"error":"toolhost exit 137: more than 1 processes"`)
	f("1", embed, "hang", `"error":"embedding failed: toolhost exit 137: more than 1 processes"`)
	for _, enough := range []string{"2", "0", "-1", "x", ""} {
		f(enough, kept, "go", `"status":"OK"`)
		f(enough, once, "go", `"status":"OK"`)
		f(enough, embed, "go", `"error":"embedding failed: fine"`)
	}
}
