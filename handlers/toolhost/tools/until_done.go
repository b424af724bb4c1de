package tools

import (
	"context"
	"io"

	"trunkline/handlers/toolhost/tool"
)

// untilDone reads until ctx is done, and notes how much the call works on (tool.Worked): a call that reads much must not
// delay those that read little.
type untilDone struct {
	ctx  context.Context
	from io.Reader
	read int64 // by the last Read
}

// Read reads from the file unless ctx is done.
func (u *untilDone) Read(p []byte) (int, error) {
	if err := proceed(u.ctx, u.read); err != nil {
		return 0, err
	}
	n, err := u.from.Read(p)
	u.read = int64(n)
	return n, err
}

// untilDoneAt is untilDone for reading anywhere.
type untilDoneAt struct {
	ctx  context.Context
	from io.ReaderAt
	read int64 // by the last ReadAt
}

// ReadAt reads from the file unless ctx is done.
func (u *untilDoneAt) ReadAt(p []byte, offset int64) (int, error) {
	if err := proceed(u.ctx, u.read); err != nil {
		return 0, err
	}
	n, err := u.from.ReadAt(p, offset)
	u.read = int64(n)
	return n, err
}

// proceed fails if ctx is done, or ends before the call may go on that has worked on n bytes more.
func proceed(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return tool.Worked(ctx, n)
}
