package serve

import (
	"os"

	"golang.org/x/sys/windows"
)

// takeStdout keeps standard output for the handshake and leads everything that asks for it from now on to standard error.
func takeStdout() (*os.File, error) {
	out := os.Stdout
	if err := windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, windows.Handle(realStderr.Fd())); err != nil {
		return nil, err
	}
	_ = windows.SetHandleInformation(windows.Handle(out.Fd()), windows.HANDLE_FLAG_INHERIT, 0)
	os.Stdout = realStderr
	return out, nil
}
