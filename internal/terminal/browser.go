package terminal

import (
	"os/exec"
	"runtime"
)

// OpenBrowser opens a page in the user's browser, as the desktop does it, and does not wait.
func OpenBrowser(url string) error {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return exec.Command(command[0], append(command[1:], url)...).Start()
}
