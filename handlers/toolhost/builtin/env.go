package builtin

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"trunkline/handlers/toolhost/tool"
)

// Env is what the built-in tools work on (toolhost §4.7, §6). It is set up once and then only read,
// by any goroutine. All directories are absolute and clean; none has to exist.
type Env struct {
	// Root is the directory that files are read in: MACHINA_ROOT, else the working directory.
	Root string
	// RequestDir is where relative names are looked for first: MACHINA_REQUEST_DIR, "" for nowhere.
	// One outside of Root is not looked into: nothing there may be read.
	RequestDir string
	// WriteRoot is where files are written, inside Root or not: MACHINA_FS_WRITE_ROOT, else work.
	WriteRoot string
	// MemoryEnv is what the MEMORY and VECDB tools need beyond that.
	MemoryEnv
	// Embed is what makes embeddings.
	Embed EmbedEnv

	swept sweeps // by FILE.WRITE
}

// EnvFrom reads the environment; wd stands in for a missing MACHINA_ROOT. Relative directories are
// under the root, which must be absolute. An unknown provider of embeddings is an error.
func EnvFrom(getenv func(string) string, wd string) (*Env, error) {
	root := tool.Under(wd, getenv("MACHINA_ROOT"))
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("cannot use root: %q is not absolute and no absolute working directory is known", root)
	}
	e := &Env{Root: root, WriteRoot: filepath.Join(root, "work")}
	if dir := getenv("MACHINA_REQUEST_DIR"); dir != "" {
		e.RequestDir = tool.Under(root, dir)
	}
	if dir := getenv("MACHINA_FS_WRITE_ROOT"); dir != "" {
		e.WriteRoot = tool.Under(root, dir)
	}
	e.MemoryEnv = memoryEnvFrom(getenv, root)
	var err error
	e.Embed, err = embedEnvFrom(getenv)
	return e, err
}

const (
	defaultRotateBytes = 64 << 20
	defaultVecDim      = 384
	// maxVecDim bounds a row of a vector file to 32 KiB; the models in use stay well below.
	maxVecDim = 8192
)

// MemoryEnv is what the MEMORY and VECDB tools need (toolhost §4.7 "Memory", §6).
type MemoryEnv struct {
	// MemoryRoot is the directory of the memory files, absolute and clean: MACHINA_MEMORY_ROOT if
	// absolute, else work/memory in the root. Every call refuses one outside the root.
	MemoryRoot string
	// RotateBytes is the size of a full memory file, 0: none. MACHINA_MEMORY_ROTATE_BYTES, 64 MiB.
	RotateBytes int64
	// WALFsync makes each append durable before the call returns: MACHINA_WAL_FSYNC is 1 or true.
	WALFsync bool
	// VecDim is the length of the vectors of a new vector store, 1 to 8192: MACHINA_VECDB_DIM, 384.
	VecDim int
	// Weights are set by MACHINA_MEMORY_W_* and MACHINA_MEMORY_RECENCY_TAU_SEC.
	Weights Weights
}

// Weights is what the parts of a score of MEMORY.QUERY count (toolhost §4.7).
type Weights struct {
	// Overlap, Emb, BM25 and Recency are the factors of the four parts: 0.55, 0.35, 0.20, 0.10.
	Overlap, Emb, BM25, Recency float64
	// Tau is the age in seconds at which recency has fallen to 1/e, above 0: 21600.
	Tau float64
}

func memoryEnvFrom(getenv func(string) string, root string) MemoryEnv {
	e := MemoryEnv{
		MemoryRoot:  filepath.Join(root, "work", "memory"),
		RotateBytes: intBetween(getenv("MACHINA_MEMORY_ROTATE_BYTES"), 0, math.MaxInt64, defaultRotateBytes),
		WALFsync:    getenv("MACHINA_WAL_FSYNC") == "1",
		VecDim:      int(intBetween(getenv("MACHINA_VECDB_DIM"), 1, maxVecDim, defaultVecDim)),
		Weights: Weights{
			Overlap: finite(getenv("MACHINA_MEMORY_W_OVERLAP"), 0.55),
			Emb:     finite(getenv("MACHINA_MEMORY_W_EMB"), 0.35),
			BM25:    finite(getenv("MACHINA_MEMORY_W_BM25"), 0.20),
			Recency: finite(getenv("MACHINA_MEMORY_W_RECENCY"), 0.10),
			Tau:     finite(getenv("MACHINA_MEMORY_RECENCY_TAU_SEC"), 21600),
		},
	}
	if e.Weights.Tau <= 0 {
		e.Weights.Tau = 21600
	}
	if dir := getenv("MACHINA_MEMORY_ROOT"); filepath.IsAbs(dir) {
		e.MemoryRoot = filepath.Clean(dir)
	}
	return e
}

func intBetween(text string, low, high, otherwise int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return otherwise
	}
	return n
}

// finite returns the number text if it is one that can be reckoned with.
func finite(text string, otherwise float64) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return otherwise
	}
	return x
}
