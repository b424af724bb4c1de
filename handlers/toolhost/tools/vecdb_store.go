package tools

import (
	"cmp"
	"errors"
	"io"
	"os"

	"trunkline/codec/jsonx"
)

// The files of a vector store, in work/vectordb/<stream> of the root (toolhost §4.7 "VecDB").
//
//	schema.json      {"dim":n[,"provider":"..."]}; without a provider it is "hash"
//	embeddings.f32   row 0, row 1, ...: dim float32 each, little-endian. Its lock is the lock of the store
//	meta.jsonl       {"i":n,"ts_ms":n,"provider":"..."[,"meta":{...}],"text":"..."} for row n; of several with one n the last
//
// A row exists once all of it is in embeddings.f32. Its line is written before, so a writer that is killed leaves a line without a
// row, which no reader sees and the next writer cuts off, but no row without its line.
const (
	schemaFile     = "schema.json"
	embeddingsFile = "embeddings.f32"
	metaFile       = "meta.jsonl"
)

const (
	// maxSchema is how much of schema.json is read, in bytes.
	maxSchema = 64 << 10
	// floatBytes is the size of one component of a row.
	floatBytes = 4
)

// What is wrong with a store; the texts are those of toolhost §4.7.
var (
	errInvalidDim        = errors.New("invalid schema.dim")
	errMissingSchema     = errors.New("missing schema")
	errMissingEmbeddings = errors.New("missing embeddings")
	errOtherProvider     = errors.New("the vectors of the store are of another embedding provider")
)

// vecdbDir opens the directory of a stream.
func vecdbDir(e *Env, stream string, create bool) (*dir, error) {
	return newRoot(e.Root).dir("work/vectordb/"+stream, create)
}

// vecdbError returns the error of the tool for err.
func vecdbError(err error) error {
	switch err {
	case errInvalidDim, errMissingSchema, errMissingEmbeddings, errOtherProvider:
		return err
	}
	if _, ok := err.(*embedError); ok {
		return err
	}
	return errOpenFailed
}

// readSchema returns the length of the vectors of the store in d. It fails if they are not of provider.
func readSchema(d *dir, provider string) (dim int, err error) {
	f, err := d.open(schemaFile, os.O_RDONLY, 0)
	if isMissing(err) {
		return 0, errMissingSchema
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSchema+1))
	if err != nil {
		return 0, err
	}
	if len(text) > maxSchema || !jsonx.Check(text, jsonx.MaxDepth).OK() {
		return 0, errInvalidDim
	}
	a := pick(text, "dim", "provider")
	n := a.integer("dim", 0)
	if n < 1 || n > maxVecDim {
		return 0, errInvalidDim
	}
	made, ok := a.text("provider")
	if !ok {
		made = hashProvider
	}
	if made != provider {
		return 0, errOtherProvider
	}
	return int(n), nil
}

// writeSchema makes the schema of a new store in d, whose lock is held. It is there whole or not at all.
func writeSchema(d *dir, dim int, provider string, sync bool) error {
	const fresh = "." + schemaFile + ".new"
	f, err := d.open(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	text := jsonx.Build(nil).Int("dim", int64(dim))
	if provider != hashProvider {
		text = text.Text("provider", provider)
	}
	_, err = f.Write(text.End())
	if err == nil && sync {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = d.rename(fresh, schemaFile)
	}
	return err
}
