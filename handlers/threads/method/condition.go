package method

import "net/http"

// Condition is why a request is refused: a row of the table in threads §3.4.
type Condition uint8

// The conditions, named as in the contract.
const (
	Unauthorized     Condition = iota + 1 // C1
	UnknownKey                            // C1, where the key may be in the next key set
	KeysUnavailable                       // C18
	Forbidden                             // C2
	OtherWorkspace                        // C3
	ClaimMismatch                         // C4
	NoAuthority                           // C5
	NotFound                              // C6
	NoSuchMessage                         // C7
	Invalid                               // C8
	WrongHTTPMethod                       // C8a
	TooLarge                              // C8b
	WrongMediaType                        // C8c
	BadTransition                         // C9
	Conflict                              // C10
	KeyReused                             // C11
	RateLimited                           // C12
	UnmanagedRuntime                      // C13
	HumanBusy                             // C14
	WakeFailed                            // C15
	Unavailable                           // C16
	Defect                                // C17
	BodyTimeout                           // C8, when the body does not come in time

	numConditions
)

// Codes is what a condition is called, and how it is answered.
type Codes struct {
	// Spec and Legacy are the codes of the two dialects.
	Spec, Legacy string
	// Status and LegacyStatus are those of HTTP.
	Status, LegacyStatus int
	Retryable            bool
}

var codes = [numConditions]Codes{
	Unauthorized:     {"UNAUTHORIZED", "UNAUTHORIZED", http.StatusUnauthorized, http.StatusUnauthorized, false},
	UnknownKey:       {"UNAUTHORIZED", "UNAUTHORIZED", http.StatusUnauthorized, http.StatusUnauthorized, true},
	KeysUnavailable:  {"INTERNAL", "INTERNAL", http.StatusServiceUnavailable, http.StatusServiceUnavailable, true},
	Forbidden:        {"FORBIDDEN", "FORBIDDEN", http.StatusForbidden, http.StatusForbidden, false},
	OtherWorkspace:   {"OUT_OF_SCOPE_WORKSPACE", "WORKSPACE_MISMATCH", http.StatusForbidden, http.StatusForbidden, false},
	ClaimMismatch:    {"CLAIM_MISMATCH", "FORBIDDEN", http.StatusForbidden, http.StatusForbidden, false},
	NoAuthority:      {"INSUFFICIENT_AUTHORITY", "FORBIDDEN", http.StatusForbidden, http.StatusForbidden, false},
	NotFound:         {"NOT_FOUND", "NOT_FOUND", http.StatusNotFound, http.StatusNotFound, false},
	NoSuchMessage:    {"NOT_FOUND", "INVALID_ARGUMENT", http.StatusNotFound, http.StatusBadRequest, false},
	Invalid:          {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusBadRequest, http.StatusBadRequest, false},
	WrongHTTPMethod:  {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusMethodNotAllowed, http.StatusMethodNotAllowed, false},
	TooLarge:         {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusRequestEntityTooLarge, http.StatusRequestEntityTooLarge, false},
	WrongMediaType:   {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusUnsupportedMediaType, http.StatusUnsupportedMediaType, false},
	BadTransition:    {"CONFLICT", "INVALID_THREAD_TRANSITION", http.StatusConflict, http.StatusConflict, false},
	Conflict:         {"CONFLICT", "CONFLICT", http.StatusConflict, http.StatusConflict, false},
	KeyReused:        {"IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_CONFLICT", http.StatusConflict, http.StatusConflict, false},
	RateLimited:      {"RATE_LIMITED", "RATE_LIMITED", http.StatusTooManyRequests, http.StatusTooManyRequests, true},
	UnmanagedRuntime: {"UNMANAGED_RUNTIME", "CONFLICT", http.StatusConflict, http.StatusConflict, false},
	HumanBusy:        {"HUMAN_INPUT_COLLISION", "CONFLICT", http.StatusConflict, http.StatusConflict, true},
	WakeFailed:       {"WAKE_FAILED", "INTERNAL", http.StatusBadGateway, http.StatusBadGateway, false},
	Unavailable:      {"INTERNAL", "INTERNAL", http.StatusServiceUnavailable, http.StatusServiceUnavailable, true},
	Defect:           {"INTERNAL", "INTERNAL", http.StatusInternalServerError, http.StatusInternalServerError, false},
	BodyTimeout:      {"VALIDATION_ERROR", "INVALID_ARGUMENT", http.StatusRequestTimeout, http.StatusRequestTimeout, true},
}

// Codes returns how c is answered.
func (c Condition) Codes() *Codes { return &codes[c] }
