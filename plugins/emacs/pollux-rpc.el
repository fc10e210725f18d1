;;; pollux-rpc.el --- How pollux.el talks to pollux  -*- lexical-binding: t; -*-

;; Author: the pollux authors
;; URL: https://github.com/pollux-companion/pollux
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; JSON-RPC with "pollux lsp", one message a line, and what all files of the
;; package share: the group, the connection, the last error.
;;
;; jsonrpc.el is not used because a question to the user (pollux/ask) is
;; answered minutes later, and its dispatcher must answer at once.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(declare-function json-encode "json")
(declare-function json-read-from-string "json")
(defvar json-array-type)
(defvar json-false)
(defvar json-null)
(defvar json-object-type)

(defgroup pollux nil
  "Gemini CLI in this editor."
  :group 'tools
  :link '(info-link "(pollux)Top"))

(define-error 'pollux-refused "Pollux's request cannot be carried out")

(defvar pollux--process nil "The companion's process, nil without one.")
(defvar pollux--ready nil "Non-nil when the companion has been initialized.")
(defvar pollux--error nil "The last error that was told.")
(defvar pollux--handlers nil
  "What the companion may ask: an alist of method and function.
The function of a request takes the parameters, a property list, and a
function that answers with its argument, at once or later; it signals
`pollux-refused' with a code and a message where it cannot.  That of a
notification takes the parameters and nil.")
(defvar pollux--cancel-functions nil
  "Called with the answering function of a request that is taken back.")

(defvar pollux--calls nil "What waits for an answer: lists of id, THEN and ELSE.")
(defvar pollux--count 0 "The id of the last request.")
(defvar pollux--asked nil "The companion's open requests: conses of id and answering function.")
(defvar pollux--chunks nil "What has arrived of an unfinished line, newest first.")

(defun pollux--complain (format &rest args)
  "Tell and remember the error FORMAT with ARGS."
  (setq pollux--error (apply #'format format args))
  (message "[pollux] %s" pollux--error))

;;;; Large texts

(defmacro pollux--at-once (&rest body)
  "Run BODY, which may handle megabytes, with garbage collected rarely.
Else most of the time would go into that."
  (declare (indent 0) (debug t))
  `(let ((gc-cons-threshold (max gc-cons-threshold (* 128 1024 1024))))
     ,@body))

(defmacro pollux--exactly (&rest body)
  "Run BODY, which searches, with the case of letters heeded.
That is several times as fast, also where there are no letters."
  (declare (indent 0) (debug t))
  `(let ((case-fold-search nil))
     ,@body))

;;;; JSON

(defconst pollux--native
  (and (fboundp 'json-serialize) (fboundp 'json-parse-string)
       (ignore-errors (stringp (json-serialize '(:a 1)))))
  "Non-nil in an Emacs that reads and writes JSON itself.")

(defun pollux--encode (object)
  "Return OBJECT, of property lists and vectors, as JSON; nil is null."
  (if pollux--native
      (let ((text (json-serialize object :null-object nil :false-object :json-false)))
        (if (multibyte-string-p text) (encode-coding-string text 'utf-8-unix) text))
    (require 'json)
    (let ((json-null nil) (json-false :json-false))
      (encode-coding-string (json-encode object) 'utf-8-unix))))

(defun pollux--decode (text)
  "Return the JSON in TEXT as property lists and vectors; null is nil."
  (if pollux--native
      (json-parse-string text :object-type 'plist :null-object nil :false-object :json-false)
    (require 'json)
    (let ((json-object-type 'plist) (json-array-type 'vector)
          (json-null nil) (json-false :json-false))
      (json-read-from-string text))))

(defconst pollux--empty (make-hash-table :size 1) "The object {}.")

(defun pollux--exact-p (text)
  "Return non-nil when JSON can carry TEXT as it is."
  (not (pollux--exactly (string-match-p "[^\0-\ud7ff\ue000-\x10ffff]" text))))

(defun pollux--sayable (text)
  "Return TEXT with what JSON cannot carry replaced."
  (if (pollux--exact-p text)
      text
    (replace-regexp-in-string "[^\0-\ud7ff\ue000-\x10ffff]" "\ufffd" text t t)))

;;;; Messages

(defun pollux--live-p ()
  "Return non-nil when there is a companion to talk to."
  (and pollux--process (process-live-p pollux--process)))

(defun pollux--send (&rest message)
  "Send MESSAGE, a property list without its version."
  (when (pollux--live-p)
    (process-send-string pollux--process
                         (concat (pollux--encode (append '(:jsonrpc "2.0") message)) "\n"))))

(defun pollux--notify (method params)
  "Send the notification METHOD with PARAMS, when there is a companion."
  (pollux--send :method method :params params))

(defun pollux--call (method params &optional then else)
  "Ask the companion for METHOD with PARAMS.
THEN is called with the result, ELSE with the message of an error; the
default of ELSE tells it to the user."
  (push (list (cl-incf pollux--count) then (or else (lambda (message) (pollux--complain "%s" message))))
        pollux--calls)
  (pollux--send :id pollux--count :method method :params params))

(defun pollux--answer (id)
  "Return a function that answers the companion's request ID, once."
  (let (answer)
    (setq answer (lambda (result)
                   (when (rassq answer pollux--asked)
                     (setq pollux--asked (cl-delete answer pollux--asked :key #'cdr))
                     (pollux--send :id id :result result))))
    (push (cons id answer) pollux--asked)
    answer))

(defun pollux--refuse (id code message)
  "Answer the companion's request ID with the error CODE and MESSAGE."
  (setq pollux--asked (cl-delete id pollux--asked :key #'car :test #'equal))
  (pollux--send :id id :error (list :code code :message message)))

(defun pollux--take (message)
  "Handle MESSAGE, a property list."
  (let* ((id (plist-get message :id)) (method (plist-get message :method))
         (handler (cdr (assoc method pollux--handlers))))
    (cond
     ((equal method "$/cancelRequest")
      (when-let ((open (assoc (plist-get (plist-get message :params) :id) pollux--asked)))
        (run-hook-with-args 'pollux--cancel-functions (cdr open))
        (pollux--refuse (car open) -32800 "cancelled")))
     ((not method)
      (when-let ((call (assoc id pollux--calls)))
        (setq pollux--calls (delq call pollux--calls))
        (pcase-let ((`(,_ ,then ,else) call) (err (plist-get message :error)))
          (if err
              (funcall else (or (plist-get err :message) "an error without a message"))
            (when then (funcall then (plist-get message :result)))))))
     ((not id)
      (when handler (funcall handler (plist-get message :params) nil)))
     ((not handler)
      (pollux--refuse id -32601 (format "the plugin does not know %s" method)))
     (t
      (condition-case err
          (funcall handler (plist-get message :params) (pollux--answer id))
        (pollux-refused (pollux--refuse id (nth 1 err) (nth 2 err)))
        (error (pollux--refuse id -32603 (error-message-string err))))))))

(defvar pollux--whole nil "Non-nil when there is a whole line among the chunks.")
(defvar pollux--draining nil "Non-nil while `pollux--filter' itself reads on.")

(defun pollux--filter (process chunk)
  "Take the CHUNK of PROCESS's output.
What else there is of a large message is read at once: Emacs before 30 would
come here for each 4096 bytes of it."
  (push chunk pollux--chunks)
  (when (pollux--exactly (string-match-p "\n" chunk))
    (setq pollux--whole t))
  (unless (or pollux--draining pollux--whole (< (length chunk) 1024))
    (let ((pollux--draining t)
          (read-process-output-max (max read-process-output-max (* 1024 1024))))
      (while (and (not pollux--whole) (accept-process-output process 0 nil 1)))))
  (when (and pollux--whole (not pollux--draining))
    (setq pollux--whole nil)
    (pollux--at-once
      (let ((lines (pollux--exactly (split-string (apply #'concat (nreverse pollux--chunks)) "\n"))))
        (setq pollux--chunks (last lines))
        (dolist (line (butlast lines))
          (when (eq process pollux--process)
            (with-demoted-errors "[pollux] %S"
              (unless (string-empty-p line)
                (pollux--take (pollux--decode line))))))))))

(defun pollux--connect (command ended)
  "Start COMMAND, a list, as the companion.
ENDED is called without arguments when it has ended, unless
`pollux--disconnect' came before."
  (setq pollux--calls nil pollux--asked nil pollux--chunks nil pollux--whole nil
        pollux--process
        (let ((process-adaptive-read-buffering nil) ; which waits for more between the parts of a large message
              (read-process-output-max (max read-process-output-max (* 1024 1024)))
              (default-directory (if (file-accessible-directory-p default-directory)
                                     default-directory
                                   temporary-file-directory)))
          (make-process :name "pollux" :command command
                        :connection-type 'pipe :coding 'utf-8-emacs-unix
                        :stderr (get-buffer-create " *pollux stderr*")
                        :filter #'pollux--filter
                        :sentinel (lambda (process _event)
                                    (when (and (eq process pollux--process) (not (process-live-p process)))
                                      (setq pollux--process nil pollux--ready nil)
                                      (funcall ended)))
                        :noquery t)))
  (when-let ((stderr (get-buffer-process " *pollux stderr*")))
    (set-process-query-on-exit-flag stderr nil)))

(defun pollux--disconnect ()
  "Stop the companion in good order, within a second."
  (let ((process pollux--process) (end (+ (float-time) 1)))
    (when (pollux--live-p)
      (ignore-errors
        (pollux--call "shutdown" '(:keep :json-false) (lambda (_) (pollux--notify "exit" nil)) #'ignore)
        (while (and (process-live-p process) (< (float-time) end))
          (accept-process-output nil 0.02)))
      (setq pollux--process nil)
      (delete-process process))
    (setq pollux--process nil pollux--ready nil)))

(defun pollux--hang-up ()
  "Let the companion know that Emacs ends; it does the rest by itself.
This may run within a signal's handler, where nothing must be waited for."
  (when (pollux--live-p)
    (ignore-errors (process-send-eof pollux--process))))

(defun pollux--say-last (command &rest calls)
  "Start COMMAND, a list, to hear CALLS, (METHOD . PARAMS); it outlives Emacs.
What Emacs starts by `make-process' is sent SIGHUP when Emacs ends."
  (ignore-errors
    (let ((coding-system-for-write 'binary))
      (apply #'call-process-region
             (mapconcat (lambda (call) (concat (pollux--encode (list :jsonrpc "2.0" :id 1 :method (car call) :params (cdr call))) "\n")) calls "")
             nil (car command) nil 0 nil (cdr command)))))

(provide 'pollux-rpc)
;;; pollux-rpc.el ends here
