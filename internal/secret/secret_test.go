package secret_test

import (
	"strings"
	"testing"

	"github.com/proveto/proveto/internal/secret"
)

// made are keys that open nothing; they are put together here so that this file
// holds none.
var made = map[string]string{
	"private_key":     "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
	"aws_access_key":  "AKIA" + "Q3EGVXR7YTMN2LKD",
	"github_token":    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
	"slack_token":     "xoxb-" + "263594206564-FGqddMF8t08v8N7Oq4i57vs1",
	"google_api_key":  "AIza" + "SyD3xQ7zK2mN8bV5cL1pW9rT4yU6iO0aSdFg"[:35],
	"openai_key":      "sk-proj-" + "T3BlbkFJ9a8Qx7Zk2Lm4Nv6Bc1Wp5Rt",
	"anthropic_key":   "sk-ant-" + "api03-9a8Qx7Zk2Lm4Nv6Bc1Wp5RtYu3Io0As",
	"assigned_secret": `db_password = "` + "q8Zr2LmX7vB4nK9wT1" + `yC3"`,
}

func TestFindKnowsEachShape(t *testing.T) {
	t.Parallel()
	for shape, text := range made {
		hits := secret.Find("first\nkey: " + text + "\nlast\n")
		if len(hits) != 1 || hits[0].Shape != shape || hits[0].Line != 2 {
			t.Errorf("Find(%s) = %+v", shape, hits)
			continue
		}
		if m := hits[0].Masked(); strings.Contains(m, hits[0].Text) {
			t.Errorf("Masked of %s tells it: %s", shape, m)
		}
	}
}

func TestFindLeavesOtherTextAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`password := os.Getenv("DATABASE_PASSWORD_OF_THE_SERVICE")`,
		`apiKey = "your-api-key-goes-here-000"`,
		`secret: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"`,
		`AKIA` + `IOSFODNN7EXAMPLE`,
		`-----BEGIN PUBLIC KEY-----`,
		`sum: h1:wN+x4NVGpMsO7ErUn/mUI3vEoE6Jt13X2s0bqwp9tc8=`,
		`id := "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`,
		`token = newToken(strings.Repeat("x", 40))`,
		`ask-them-about-the-thing-that-we-talked-about-yesterday`,
	} {
		if hits := secret.Find(text); len(hits) != 0 {
			t.Errorf("Find(%q) = %+v, want nothing", text, hits)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, text := range made {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, h := range secret.Find(text) {
			if h.Text == "" || h.Line < 1 || !strings.Contains(text, h.Text) {
				t.Errorf("hit %+v is not in the text", h)
			}
		}
	})
}
