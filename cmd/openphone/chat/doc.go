// Package chat is a phone in a terminal: it speaks the conversations dialect through the phone WebSocket, like any other
// phone, and knows nothing of the host behind it. What a person sees here is what a phone could show.
//
// Chat runs in one goroutine (Chat.Run); a Phone may be used from several.
package chat
