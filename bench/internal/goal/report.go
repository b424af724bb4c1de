package goal

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteJSON writes a report to the file of that name; an empty name asks for none.
func WriteJSON(name string, report any) error {
	if name == "" {
		return nil
	}
	b, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
