package store

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// systemKeychain returns the Credential Manager, used as in the CLI's library (keytar).
func (s *Store) systemKeychain() keychain { return credentialManager{} }

// credentialManager stores generic credentials under "service/account".
type credentialManager struct{}

// credential is CREDENTIALW.
type credential struct {
	Flags, Type         uint32
	TargetName, Comment *uint16
	LastWritten         windows.Filetime
	BlobSize            uint32
	Blob                *byte
	Persist             uint32
	AttributeCount      uint32
	Attributes          uintptr
	TargetAlias         *uint16
	UserName            *uint16
}

const (
	credGeneric    = 1
	credEnterprise = 3 // roams with the user's profile
)

func advapi(name string) *windows.LazyProc {
	return windows.NewLazySystemDLL("advapi32.dll").NewProc(name)
}

func (credentialManager) place() string { return "the Credential Manager" }

func (credentialManager) get(service, account string) (string, error) {
	target, err := windows.UTF16PtrFromString(service + "/" + account)
	if err != nil {
		return "", err
	}
	var c *credential
	ok, _, err := advapi("CredReadW").Call(uintptr(unsafe.Pointer(target)), credGeneric, 0, uintptr(unsafe.Pointer(&c)))
	if ok == 0 {
		return "", notFoundIsFine(err)
	}
	defer advapi("CredFree").Call(uintptr(unsafe.Pointer(c))) //nolint:errcheck // it returns nothing
	return string(unsafe.Slice(c.Blob, c.BlobSize)), nil
}

func (credentialManager) set(service, account, secret string) error {
	target, err := windows.UTF16PtrFromString(service + "/" + account)
	if err != nil {
		return err
	}
	user, err := windows.UTF16PtrFromString(account)
	if err != nil {
		return err
	}
	blob := []byte(secret)
	c := credential{Type: credGeneric, TargetName: target, UserName: user, Persist: credEnterprise, BlobSize: uint32(len(blob)), Blob: unsafe.SliceData(blob)}
	if ok, _, err := advapi("CredWriteW").Call(uintptr(unsafe.Pointer(&c)), 0); ok == 0 {
		return fmt.Errorf("the Credential Manager says: %w", err)
	}
	return nil
}

func (credentialManager) remove(service, account string) error {
	target, err := windows.UTF16PtrFromString(service + "/" + account)
	if err != nil {
		return err
	}
	if ok, _, err := advapi("CredDeleteW").Call(uintptr(unsafe.Pointer(target)), credGeneric, 0); ok == 0 {
		return notFoundIsFine(err)
	}
	return nil
}

func notFoundIsFine(err error) error {
	if errors.Is(err, windows.ERROR_NOT_FOUND) {
		return nil
	}
	return fmt.Errorf("the Credential Manager says: %w", err)
}
