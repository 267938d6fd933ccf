package config

import "os"

// write replaces a file whole: a new one takes the place of the old one.
func write(path string, b []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
