package sessions

import (
	"time"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Bounds of this package. "Units" are UTF-16 code units, which is how phones count.
const (
	defaultMaxSessions = 1000
	defaultMaxTitle    = 200     // units
	promptTitle        = 80      // characters of the first prompt that become the title
	maxLiveUnits       = 128_000 // units of a running reply that phones are shown
	maxReplyBytes      = 4 << 20 // of a running reply kept for its end
	maxNativeRows      = 10_000  // native conversations kept in memory
	maxEndedKept       = 4096    // ids of ended runs remembered against late events
	maxToolBytes       = 4 << 20 // arguments and results of one run kept for merging
	maxToolCalls       = 10_000  // calls of one run told apart
	maxHistoryPage     = 100     // messages
	maxHistoryBytes    = 7 << 20
	maxNoticeUnits     = 4000 // text an extension wrote
	maxName            = 200  // bytes of a name a plugin chose

	defaultTextUnits       = 128_000
	defaultAttachments     = 8
	defaultAttachmentBytes = 5 << 20

	// prepareTime leaves a phone, which waits 20 s, time for the receipt and the answer.
	prepareTime = 18 * time.Second
	// lockTime is how long a change waits for another one of the same conversation.
	lockTime = 15 * time.Second
	// healthTime is what a phone's probe of 5 s leaves.
	healthTime = 4 * time.Second
	// healthAge is the oldest evidence a handshake accepts.
	healthAge = 5 * time.Second
	// askAgainTime bounds a late reconciliation, which events of the process wait behind.
	askAgainTime = 10 * time.Second
	// catchUpTime is how long an answer waits for the events it already reflects.
	catchUpTime = 250 * time.Millisecond
)

// firstCharacters cuts s to at most n code points.
func firstCharacters(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// limits are the runtime's bounds of a prompt with the defaults filled in.
func (c *Conversations) limits() runtime.Limits {
	var l runtime.Limits
	if d := c.rt.Description(); d != nil && d.Limits != nil {
		l = *d.Limits
	}
	if l.TextUnits == 0 {
		l.TextUnits = defaultTextUnits
	}
	if l.Attachments == 0 {
		l.Attachments = defaultAttachments
	}
	if l.AttachmentBytes == 0 {
		l.AttachmentBytes = defaultAttachmentBytes
	}
	return l
}

func (c *Conversations) checkText(text string) error {
	limit := int(c.limits().TextUnits)
	switch {
	case !utf8.ValidString(text):
		return codes.New(codes.ParamsInvalid)
	case len(text) > limit && jsonframe.Units(text) > limit:
		return codes.New(codes.PromptTooLong, "limit", itoa(limit))
	}
	return nil
}
