package codes

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestErrorShowsItsFixedSentenceAlone(t *testing.T) {
	cause := errors.New("open /home/me/secret: denied")
	err := fmt.Errorf("send: %w", New(PromptTooLong, "limit", "128000").Because(cause))
	e := As(err)
	if e == nil || Of(err) != PromptTooLong || !errors.Is(err, New(PromptTooLong)) || errors.Is(err, New(Internal)) {
		t.Fatalf("the coded error is not found in %v", err)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost to the local log")
	}
	if got := e.Error(); strings.Contains(got, "secret") || !strings.Contains(got, "128000") {
		t.Errorf("Error() = %q, want the sentence with its parameter and no cause", got)
	}
	if !strings.Contains(e.LogValue().String(), "secret") {
		t.Error("the local log does not get the cause")
	}
}

func TestErrorWithoutACodeIsInternal(t *testing.T) {
	if got := Of(errors.New("x")); got != Internal {
		t.Errorf("Of = %q, want internal", got)
	}
	if got := Of(nil); got != "" {
		t.Errorf("Of(nil) = %q, want none", got)
	}
}

func TestUnknownCodeIsKeptAndItsOutcomeUnknown(t *testing.T) {
	i := Lookup("acme.melted")
	if Known(i.Code) || i.Code != "acme.melted" || i.Outcome != Unknown || i.Message != Lookup(UnknownCode).Message {
		t.Errorf("Lookup = %+v", i)
	}
}

func TestFillBoundsAndCleansParameters(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		params           map[string]string
	}{
		{"filled", "At most {limit}.", "At most 7.", map[string]string{"limit": "7"}},
		{"missing", "At most {limit}.", "At most -.", nil},
		{"braces in a value do not nest", "{a}", "(a)", map[string]string{"a": "{a}"}},
		{"open brace", "a {b", "a {b", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Fill(c.text, c.params); got != c.want {
				t.Errorf("Fill = %q, want %q", got, c.want)
			}
		})
	}
	if got := New(ConfigInvalid, "where", strings.Repeat("é", 300)).Params["where"]; len([]rune(got)) != 200 {
		t.Errorf("a parameter of 300 characters became %d, want 200", len([]rune(got)))
	}
}

func TestRegistryIsWhole(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z_]*$`)
	numbers := map[int]string{}
	for _, i := range All() {
		if !name.MatchString(i.Code) || i.Message == "" || i.Source == "" || i.Retry == "" {
			t.Errorf("%+v is not complete", i)
		}
		if other, ok := numbers[i.Number]; ok {
			t.Errorf("%s and %s share number %d", i.Code, other, i.Number)
		}
		numbers[i.Number] = i.Code
	}
}
