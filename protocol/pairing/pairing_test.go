package pairing

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vectors are a recording-free check: computed with fixed keys, kept beside the code.
func vectors(t *testing.T) (v struct {
	AccessCode struct{ Code, SHA256Hex string } `json:"accessCode"`
	Session12  struct{ Code, Normalized, CodeHash string }
	Short      struct{ Code, CodeHash string }
	Secure     struct {
		CodeKeyHex, SessionID, RequestID, ClientPublicKey, ClientProof, BridgePublicKey, Nonce, Ciphertext, BridgeProof, Plaintext string
	} `json:"secureExchange"`
},
) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "pairing-vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCodeVectors(t *testing.T) {
	v := vectors(t)
	if got := CodeHash(Normalize(v.AccessCode.Code)); got != v.AccessCode.SHA256Hex {
		t.Errorf("access code: %s", got)
	}
	if got := Normalize("abcd-Efgh jkmn"); got != v.Session12.Normalized || Normalize(v.Session12.Code) != got || CodeHash(got) != v.Session12.CodeHash {
		t.Errorf("12 characters: %s", got)
	}
	if got := CodeHash(v.Short.Code); got != v.Short.CodeHash {
		t.Errorf("six digits: %s", got)
	}
	s := v.Secure
	key, err := hex.DecodeString(s.CodeKeyHex)
	if err != nil {
		t.Fatal(err)
	}
	if got := Proof(key, "start", s.SessionID, s.RequestID, s.ClientPublicKey); got != s.ClientProof {
		t.Errorf("proof of the phone: %s", got)
	}
	if got := Proof(key, "result", s.SessionID, s.RequestID, s.ClientPublicKey, s.BridgePublicKey, s.Nonce, s.Ciphertext); got != s.BridgeProof {
		t.Errorf("proof of the owner: %s", got)
	}
}

func TestRelayPayload(t *testing.T) {
	text, err := BuildRelay(Payload{Backend: "codex", Server: "https://r.example", GatewayID: "gw_1", AccessCode: "ABC234", DisplayName: "Lab <1>"})
	want := `{"v":2,"k":"cp","b":"codex","s":"https://r.example","g":"gw_1","a":"ABC234","n":"Lab <1>"}`
	if err != nil || text != want {
		t.Errorf("got %s, %v", text, err)
	}
	if p, err := Parse(text); err != nil || p.GatewayID != "gw_1" || p.Backend != "codex" || p.DisplayName != "Lab <1>" {
		t.Errorf("reads as %+v, %v", p, err)
	}
	if p, err := Parse(vectors(t).Secure.Plaintext); err != nil || p.AccessCode != "ABC234" || p.Server != "https://registry.example" {
		t.Errorf("the vector reads as %+v, %v", p, err)
	}
	if _, err := BuildRelay(Payload{Server: "https://r.example"}); err == nil {
		t.Error("an offer without id and code was made")
	}
}

func TestDirectPayload(t *testing.T) {
	token := strings.Repeat("0a", 32)
	good := Payload{Backend: "codex", URL: "ws://192.168.1.2:18000/v1/codex/ws", Token: token}
	if _, err := BuildDirect(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Payload){
		"loopback":       func(p *Payload) { p.URL = "ws://127.0.0.1:1/v1/codex/ws" },
		"another of it":  func(p *Payload) { p.URL = "ws://127.9.9.9:1/v1/codex/ws" },
		"its name":       func(p *Payload) { p.URL = "ws://localhost:1/v1/codex/ws" },
		"version 6":      func(p *Payload) { p.URL = "ws://[::1]:1/v1/codex/ws" },
		"any":            func(p *Payload) { p.URL = "ws://0.0.0.0:1/v1/codex/ws" },
		"mapped":         func(p *Payload) { p.URL = "ws://[::ffff:127.0.0.1]:1/v1/codex/ws" },
		"other path":     func(p *Payload) { p.URL = "ws://192.168.1.2:1/v1/pi/ws" },
		"token in query": func(p *Payload) { p.URL += "?token=" + token },
		"other scheme":   func(p *Payload) { p.URL = "http://192.168.1.2:1/v1/codex/ws" },
		"user":           func(p *Payload) { p.URL = "ws://u@192.168.1.2:1/v1/codex/ws" },
		"no address":     func(p *Payload) { p.URL = "" },
		"short token":    func(p *Payload) { p.Token = token[1:] },
		"other token":    func(p *Payload) { p.Token = strings.ToUpper(token) },
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			change(&p)
			if text, err := BuildDirect(p); err == nil {
				t.Errorf("made %s", text)
			}
			scanned, _ := json.Marshal(map[string]any{"version": 1, "backendKind": p.Backend, "mode": "local", "url": p.URL, "token": p.Token})
			if got, err := Parse(string(scanned)); err == nil {
				t.Errorf("read %+v", got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"version":1,"backendKind":"codex","mode":"local","url":"ws://10.0.0.1:1/v1/codex/ws","token":"` + strings.Repeat("0a", 32) + `"}`)
	f.Add(`{"v":2,"k":"cp","b":"pi","s":"https://r","g":"g","a":"A"}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		build := BuildDirect
		if p.Server != "" {
			build = BuildRelay
		}
		again, err := build(p)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", p, err)
		}
		if back, err := Parse(again); err != nil || p.Backend != back.Backend || p.URL != back.URL || p.Token != back.Token || p.AccessCode != back.AccessCode {
			t.Errorf("%+v became %+v, %v", p, back, err)
		}
	})
}
