package agent

import (
	"os"
	"os/exec"
	"syscall"
)

// createNoWindow keeps the child from opening a console window.
const createNoWindow = 0x08000000

func prepareCommand(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: createNoWindow}
}

// terminate does nothing: there is no polite signal, and closing the input ends the child.
func terminate(*os.Process) {}
