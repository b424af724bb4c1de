package builtin

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

const storeDir = "work/vectordb/default/"

// rowsOf returns the rows as they are on disk.
func rowsOf(rows ...[]float32) string {
	var b []byte
	for _, row := range rows {
		for _, x := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return string(b)
}

// store makes a store of two components a row.
func (m *memory) store(meta string, rows ...[]float32) {
	m.t.Helper()
	m.write("base/"+storeDir+schemaFile, `{"dim":2}`)
	m.write("base/"+storeDir+embeddingsFile, rowsOf(rows...))
	m.write("base/"+storeDir+metaFile, meta)
}

func TestVecdbFiles(t *testing.T) {
	m := newMemory(t, "MACHINA_VECDB_DIM", "8", "MACHINA_WAL_FSYNC", "1")
	m.ok("VECDB.UPSERT", `{"text":"hi","meta":{ "k" : "v w" }}`, `{"ok":true,"stream":"default"}`)
	m.ok("VECDB.UPSERT", `{"text":"a\n\"ö","meta":[1]}`, `{"ok":true,"stream":"default"}`)
	m.holds(storeDir+schemaFile, `{"dim":8}`)
	m.holds(storeDir+metaFile, `{"i":0,"ts_ms":1700000000000,"provider":"hash","meta":{"k":"v w"},"text":"hi"}`+"\n"+
		`{"i":1,"ts_ms":1700000000000,"provider":"hash","text":"a\n\"ö"}`+"\n")
	hi := embedding("hi", 8)
	m.holds(storeDir+embeddingsFile, rowsOf(hi, embedding("a\n\"ö", 8)))
	for i, want := range []float64{-0.136619, 0.075991, -0.628485, 0.475675, -0.150043, -0.554390, -0.136619, 0.075991} {
		if math.Abs(float64(hi[i])-want) > 5e-7 {
			t.Errorf("component %d: got %v, want %v", i, hi[i], want)
		}
	}
	// What a store is like is decided when it is made.
	m.set("MACHINA_VECDB_DIM", "16")
	m.ok("VECDB.UPSERT", `{"text":"hi"}`, `{"ok":true,"stream":"default"}`)
	m.ok("VECDB.UPSERT", `{"stream":"../n.w","text":"hi"}`, `{"ok":true,"stream":"___n_w"}`)
	m.holds("work/vectordb/___n_w/"+schemaFile, `{"dim":16}`)
	m.ok("VECDB.QUERY", `{"query":"hi","top_k":3}`, `{"ok":true,"provider":"hash","hits":[`+
		`{"i":0,"score":1.000000,"meta_line":"{\"i\":0,\"ts_ms\":1700000000000,\"provider\":\"hash\",\"meta\":{\"k\":\"v w\"},\"text\":\"hi\"}"},`+
		`{"i":2,"score":1.000000,"meta_line":"{\"i\":2,\"ts_ms\":1700000000000,\"provider\":\"hash\",\"text\":\"hi\"}"},`+
		fmt.Sprintf(`{"i":1,"score":%.6f,`, dotOf(hi, embedding("a\n\"ö", 8)))+
		`"meta_line":"{\"i\":1,\"ts_ms\":1700000000000,\"provider\":\"hash\",\"text\":\"a\\n\\\"ö\"}"}]}`)
}

func dotOf(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestVecdbRefuses(t *testing.T) {
	m := newMemory(t)
	f := m.fail
	f("VECDB.UPSERT", `{}`, "missing text")
	f("VECDB.UPSERT", `{"text":""}`, "missing text")
	f("VECDB.UPSERT", `{"text":"x","stream":`+quote(strings.Repeat("s", 129))+`}`, "invalid stream")
	most := strings.Repeat("x", 1<<20)
	f("VECDB.UPSERT", `{"text":"`+most+`x"}`, "content too large (>1MB)")
	f("VECDB.UPSERT", `{"text":"`+most[2:]+`x","meta":{}}`, "content too large (>1MB)")
	m.ok("VECDB.UPSERT", `{"stream":"big","text":"`+most[2:]+`","meta":{ }}`, `{"ok":true,"stream":"big"}`)
	m.holds(storeDir+schemaFile, "-")

	f("VECDB.QUERY", `{}`, "missing query")
	f("VECDB.QUERY", `{"query":""}`, "missing query")
	const none = `{"ok":true,"hits":[]}`
	m.ok("VECDB.QUERY", `{"query":"x"}`, none)
	m.ok("VECDB.QUERY", `{"query":"x","stream":`+quote(strings.Repeat("s", 129))+`}`, none)

	m.write("base/"+storeDir+embeddingsFile, "")
	f("VECDB.QUERY", `{"query":"x"}`, "missing schema")
	for _, schema := range []string{"", "{", "[]", "{}", `{"dim":0}`, `{"dim":8193}`, `{"dim":1.5}`, `{"dim":"8"}`, strings.Repeat(" ", maxSchema) + `{"dim":8}`} {
		m.write("base/"+storeDir+schemaFile, schema)
		f("VECDB.QUERY", `{"query":"x"}`, "invalid schema.dim")
		f("VECDB.UPSERT", `{"text":"x"}`, "invalid schema.dim")
	}
	m.write("base/"+storeDir+schemaFile, strings.Repeat(" ", maxSchema-9)+`{"dim":8}`)
	m.ok("VECDB.QUERY", `{"query":"x"}`, `{"ok":true,"provider":"hash","hits":[]}`)
	m.write("base/"+storeDir+schemaFile, ` { "v" : 1, "dim" : 8.0 } `)
	m.ok("VECDB.QUERY", `{"query":"x"}`, `{"ok":true,"provider":"hash","hits":[]}`)
	if err := os.Remove(m.path("base/" + storeDir + embeddingsFile)); err != nil {
		t.Fatal(err)
	}
	f("VECDB.QUERY", `{"query":"x"}`, "missing embeddings")

	// Rows without a schema cannot be distinguished: nothing is added to them.
	m.write("base/work/vectordb/s/"+embeddingsFile, "12345678")
	f("VECDB.UPSERT", `{"stream":"s","text":"x"}`, "missing schema")
	m.holds("work/vectordb/s/"+embeddingsFile, "12345678")
}

func TestVecdbIsConfined(t *testing.T) {
	m := newMemory(t)
	m.write("outside/schema.json", `{"dim":2}`)
	m.write("outside/embeddings.f32", "")
	if err := os.MkdirAll(m.path("base/work/vectordb/files"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.link("../../../outside", "base/work/vectordb/dir")
	for _, name := range []string{schemaFile, embeddingsFile, metaFile} {
		m.link("../../../../outside/"+name, "base/work/vectordb/files/"+name)
	}
	for _, stream := range []string{"dir", "files"} {
		m.fail("VECDB.UPSERT", `{"stream":"`+stream+`","text":"x"}`, "open failed")
		m.fail("VECDB.QUERY", `{"stream":"`+stream+`","query":"x"}`, "open failed")
	}
	if m.content("outside/meta.jsonl") != "-" || m.content("outside/embeddings.f32") != "" {
		t.Error("a file outside of the root was written")
	}
}

func TestVecdbHits(t *testing.T) {
	m := newMemory(t)
	q := embedding("q", 2)
	row := func(x float32) []float32 { return []float32{x * q[0], x * q[1]} }
	hits := func(members, want string) {
		t.Helper()
		m.ok("VECDB.QUERY", `{"query":"q"`+members+`}`, `{"ok":true,"provider":"hash","hits":[`+want+`]}`)
	}
	m.store("", row(1), row(3), row(-2), row(3), row(0))
	hits(``, `{"i":1,"score":3.000000},{"i":3,"score":3.000000},{"i":0,"score":1.000000},{"i":4,"score":0.000000},{"i":2,"score":-2.000000}`)
	hits(`,"top_k":2`, `{"i":1,"score":3.000000},{"i":3,"score":3.000000}`)
	hits(`,"top_k":1`, `{"i":1,"score":3.000000}`)

	// The last line of a row counts; lines of no row and lines that are none do not matter.
	m.store(`{"i": 1, "old": true}`+"\n\nnot json\n[1]\n"+`{ "x": 1, "i": 1.0 }`+"\r\n"+`{"i":7}`+"\n"+`{"i":"3"}`+"\n"+`{"i":3,"to`, row(1), row(3), row(2), row(2.5))
	hits(`,"top_k":2`, `{"i":1,"score":3.000000,"meta_line":"{ \"x\": 1, \"i\": 1.0 }"},{"i":3,"score":2.500000}`)

	// Rows that are no numbers are no hits, and neither is half a row.
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	m.store("", []float32{nan, 0}, []float32{inf, inf}, row(1), []float32{inf, -inf}, []float32{1})
	hits(``, `{"i":2,"score":1.000000}`)
	if err := os.Remove(m.path("base/" + storeDir + metaFile)); err != nil {
		t.Fatal(err)
	}
	hits(``, `{"i":2,"score":1.000000}`)

	var rows [][]float32
	for range 60 {
		rows = append(rows, row(1))
	}
	m.store("", rows...)
	count := func(members string, want int) {
		t.Helper()
		if got := strings.Count(string(m.call("VECDB.QUERY", `{"query":"q"`+members+`}`).Output), `"score"`); got != want {
			t.Errorf("%s: got %d hits, want %d", members, got, want)
		}
	}
	count(``, 8)
	count(`,"top_k":0`, 8)
	count(`,"top_k":-1`, 8)
	count(`,"top_k":"9"`, 8)
	count(`,"top_k":50`, 50)
	count(`,"top_k":51`, 50)
}

// TestVecdbManyRows: more rows than are read at a time.
func TestVecdbManyRows(t *testing.T) {
	m := newMemory(t)
	q := embedding("q", 2)
	rows := make([][]float32, rowsChunk/8+100)
	for i := range rows {
		rows[i] = []float32{float32(i) * q[0], float32(i) * q[1]}
	}
	m.store("", rows...)
	n := len(rows) - 1
	m.ok("VECDB.QUERY", `{"query":"q","top_k":2}`,
		fmt.Sprintf(`{"ok":true,"provider":"hash","hits":[{"i":%d,"score":%.6f},{"i":%d,"score":%.6f}]}`, n, dotOf(q, rows[n]), n-1, dotOf(q, rows[n-1])))
}

// TestVecdbRepair: what a killed writer left does no harm, and the next writer cuts it off.
func TestVecdbRepair(t *testing.T) {
	m := newMemory(t)
	row := func(i int) string {
		return fmt.Sprintf(`{"i":%d,"ts_ms":1700000000000,"provider":"hash","text":"x"}`+"\n", i)
	}
	x := embedding("x", 2)
	f := func(rows, meta, wantRows, wantMeta string) {
		t.Helper()
		m.store(meta)
		m.write("base/"+storeDir+embeddingsFile, rows)
		m.ok("VECDB.UPSERT", `{"text":"x"}`, `{"ok":true,"stream":"default"}`)
		m.holds(storeDir+embeddingsFile, wantRows)
		m.holds(storeDir+metaFile, wantMeta)
	}
	one, two := rowsOf(x), rowsOf(x, x)
	f("", "", one, row(0))
	f(one, row(0), two, row(0)+row(1))
	for n := range len(one) { // torn row
		f(one+one[:n], row(0)+row(1), two, row(0)+row(1))
	}
	for n := range len(row(1)) { // torn line; whole it has no row
		f(one, row(0)+row(1)[:n], two, row(0)+row(1))
	}
	f("", `{"i":0`, one, row(0))
	f(one, strings.TrimSuffix(row(0), "\n"), two, row(0)+row(1)) // a whole line without its end stays
	f(one, row(0)+"garbage\n", two, row(0)+"garbage\n"+row(1))
	f("", row(0)+row(1), one, row(0)+row(0)) // not what a killed writer leaves: only the last line goes
}
