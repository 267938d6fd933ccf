package cli

import (
	"os"
	"path/filepath"
	"runtime"
)

// dir is the data directory: --home, $OPENPHONE_HOME, or the usual place of this system.
func (a *app) dir() (string, error) {
	if a.home != "" {
		return filepath.Abs(a.home)
	}
	if d := os.Getenv("OPENPHONE_HOME"); d != "" {
		return filepath.Abs(d)
	}
	switch runtime.GOOS {
	case "windows", "darwin":
		d, err := os.UserConfigDir() // Application Support, AppData
		return filepath.Join(d, "OpenPhone"), err
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "openphone"), nil
	}
	d, err := os.UserHomeDir()
	return filepath.Join(d, ".local", "share", "openphone"), err
}
