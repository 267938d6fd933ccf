package codes

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// What the registry says is shown to people and relied on by programs; a row that breaks its form is found here.
func TestRegistry(t *testing.T) {
	t.Parallel()
	retries := map[string]bool{"never": true, "after_reconnect": true, "after_ms": true, "user": true}
	sources := map[string]bool{"host": true, "plugin": true, "runtime": true, "phone": true, "relay": true}
	last := 0
	for _, i := range All() {
		t.Run(i.Code, func(t *testing.T) {
			if i.Number <= last {
				t.Errorf("number %d after %d", i.Number, last)
			}
			last = i.Number
			if !retries[i.Retry] || !sources[i.Source] || i.Since == "" {
				t.Errorf("%+v", i)
			}
			if i.Message == "" || utf8.RuneCountInString(i.Message) > 200 {
				t.Errorf("message %q", i.Message)
			}
			// One code is the word the phone waits for; every other message is a sentence.
			if i.Code != Unauthorized && !strings.HasSuffix(i.Message, ".") && !strings.Contains(i.Message, ": ") {
				t.Errorf("message %q is no sentence", i.Message)
			}
			// What may have happened is never tried again by itself; a retry needs a proof that nothing did.
			if i.Retry == "after_ms" && i.Outcome != NotDispatched && i.Source == "phone" {
				t.Errorf("retried by itself with outcome %q", i.Outcome)
			}
			if !Known(i.Code) || Lookup(i.Code) != i {
				t.Error("it is not found under its own name")
			}
		})
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	cause := errors.New("open /home/somebody/secret: denied")
	e := New(PromptTooLong, "limit", "128000").Because(cause)
	if got, want := e.Error(), "prompt_too_long: The message is too long. At most 128000 characters are possible."; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if strings.Contains(e.Error(), "secret") || !errors.Is(e, cause) {
		t.Error("the cause is for the log alone, and must be found there")
	}
	if !strings.Contains(e.LogValue().String(), "secret") {
		t.Error("the log does not hear of the cause")
	}
	wrapped := fmt.Errorf("while sending: %w", e)
	if As(wrapped) != e || Of(wrapped) != PromptTooLong || !errors.Is(wrapped, New(PromptTooLong)) || errors.Is(wrapped, New(PromptEmpty)) {
		t.Error("a wrapped error is not what it was")
	}
	if Of(nil) != "" || Of(cause) != Internal || As(cause) != nil {
		t.Error("an error without a code must be internal")
	}
	if e.With(Dispatched).Outcome != Dispatched || e.Outcome != NotDispatched {
		t.Error("With must change a copy")
	}
	unknown := New("plugin.of.tomorrow")
	if unknown.Code != "plugin.of.tomorrow" || unknown.Outcome != Unknown || Known(unknown.Code) || unknown.Message() == "" {
		t.Errorf("an unknown code became %+v", unknown)
	}
}

// Parameters come from plugins: they are short, and cannot bring placeholders of their own.
func TestFill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		params     map[string]string
		want       string
	}{
		{"none", "Plain.", nil, "Plain."},
		{"named", "At most {limit}.", map[string]string{"limit": "6"}, "At most 6."},
		{"missing", "At most {limit}.", nil, "At most -."},
		{"a placeholder in a value", "{a}{b}", map[string]string{"a": "{b}", "b": "x"}, "(b)x"},
		{"not closed", "At {most", map[string]string{"most": "x"}, "At {most"},
		{"long", "{a}", map[string]string{"a": strings.Repeat("ä", 300)}, strings.Repeat("ä", 200)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Fill(c.text, c.params); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
