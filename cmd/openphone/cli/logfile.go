package cli

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/openphone-host/openphone/protocol/codes"
)

const (
	logName = "openphone.log"
	// maxLog is how large the log file grows before it is put aside; one former file is kept.
	maxLog = 8 << 20
)

// logFile is a log file of bounded size. Writes are safe for concurrent use.
type logFile struct {
	path string
	mu   sync.Mutex
	f    *os.File
	size int64
}

// openLogs opens the log below the data directory, private to its owner.
func openLogs(dir string) (*logFile, error) {
	folder := filepath.Join(dir, "logs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, codes.New(codes.StoreReadOnly).Because(err)
	}
	l := &logFile{path: filepath.Join(folder, logName)}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return codes.New(codes.StoreReadOnly).Because(err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	l.f, l.size = f, info.Size()
	return nil
}

// Write implements io.Writer. A log that cannot be written is no reason to stop serving phones.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(b)) > maxLog {
		_ = l.f.Close()
		_ = os.Rename(l.path, l.path+".1")
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(b)
	l.size += int64(n)
	return n, err
}

// Close closes the file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}
