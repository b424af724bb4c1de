package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Set is all that was measured. What is not there was not.
type Set struct {
	Runs      map[string]*Run     // by the name of the file without its ending: "peers"
	Outputs   map[string][]Output // likewise: "soak"
	Questions *Questions
	Asked     map[string]string // the questions by the names of their benchmarks
}

const (
	questionsFile = "questions.json"
	baselineFile  = "baseline.txt" // what questions were compared with; the comparison holds its content
)

// Read takes all files of a folder of measurements. A folder that is not there holds none.
func Read(dir fs.FS) (*Set, error) {
	s := &Set{Runs: map[string]*Run{}, Outputs: map[string][]Output{}}
	files, err := fs.ReadDir(dir, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the measurements: %w", err)
	}
	for _, f := range files {
		if f.IsDir() || f.Name() == baselineFile {
			continue
		}
		if err := s.read(dir, f.Name()); err != nil {
			return nil, fmt.Errorf("cannot read the measurements in %s: %w", f.Name(), err)
		}
	}
	return s, nil
}

func (s *Set) read(dir fs.FS, file string) error {
	b, err := fs.ReadFile(dir, file)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(file, path.Ext(file))
	switch {
	case file == questionsFile:
		s.Questions = new(Questions)
		return json.Unmarshal(b, s.Questions)
	case path.Ext(file) == ".json":
		s.Runs[name] = new(Run)
		return json.Unmarshal(b, s.Runs[name])
	case path.Ext(file) == ".txt":
		s.Outputs[name] = parseOutputs(string(b))
	}
	return nil
}
