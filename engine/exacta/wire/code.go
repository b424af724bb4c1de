package wire

import "bytes"

// codeMark stands before the code of a response that failed. Quotes inside of strings are escaped,
// so it is in no other place of its head.
var codeMark = []byte(`","ok":false,"result":null,"error":{"code":"`)

// headBytes is more than a response has before its code.
const headBytes = 256

// CodeOf returns the error code of a response, nil if it is ok. It is a part of the response.
func CodeOf(response []byte) []byte {
	_, rest, failed := bytes.Cut(response[:min(len(response), headBytes)], codeMark)
	if !failed {
		return nil
	}
	code, _, _ := bytes.Cut(rest, []byte{'"'})
	return code
}
