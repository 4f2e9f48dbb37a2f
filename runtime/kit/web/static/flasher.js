/** The behaviour of pages beyond links and forms; all pages also work without it. */
import { startAges } from './ages.js'
import { startConfiguration } from './configuration.js'
import { startKeys } from './keys.js'
import { startLive } from './live.js'
import { startPalette } from './palette.js'
import { startSelection } from './selection.js'
import { startUploads } from './uploads.js'
import { startWall } from './wall.js'

const spoken = document.querySelector('#spoken')

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy)
  button.classList.add('copied')
  spoken.textContent = spoken.dataset.copied
  setTimeout(() => button.classList.remove('copied'), 1500)
}

/** Pages over plain HTTP cannot use the clipboard: the text is selected instead. */
function select(button) {
  const code = button.parentElement?.querySelector('code')
  if (code) getSelection().selectAllChildren(code)
  spoken.textContent = spoken.dataset.selected
}

/** Switches at once and sets the cookie; without a script the form does the same. */
function setTheme(event) {
  const button = event.submitter
  if (!event.target.matches('.theme') || button === null) return
  event.preventDefault()
  const theme = button.value
  document.cookie = `flasher-theme=${theme}; Path=/; Max-Age=31536000; SameSite=Lax`
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  for (const each of event.target.elements) {
    if (each.name === 'theme') each.setAttribute('aria-pressed', String(each === button))
  }
}

function filter(input) {
  const given = input.value.toLowerCase().split(/\s+/)
  // Names of environment variables are found, too.
  const words = given.map((word) => word.replace(/^flasher_/, ''))
  for (const option of document.querySelectorAll(`${input.dataset.filter} [data-keywords]`)) {
    const text = option.dataset.keywords.toLowerCase()
    const isSelected = option.matches('.option') && option.querySelector(':checked') !== null
    option.hidden = !isSelected && !words.every((word) => text.includes(word))
  }
  for (const fold of document.querySelectorAll(`${input.dataset.filter} .fold`)) {
    unfold(fold, given.join('') !== '')
  }
  // The forms below send the search along, and the page after them has it again.
  for (const kept of document.querySelectorAll(`${input.dataset.filter} [data-search]`)) {
    kept.value = input.value
  }
}

/** A part with something that was found is open for as long as it is searched for. */
function unfold(fold, isSearching) {
  const found = '[data-keywords]:not([hidden])'
  const isFound = isSearching && (fold.matches(found) || fold.querySelector(found) !== null)
  if (isFound && !fold.open) fold.dataset.found = ''
  else if (isFound || fold.dataset.found === undefined) return
  else delete fold.dataset.found
  fold.open = isFound
}

/** Opens what holds the target of the address, in browsers that do not do so themselves. */
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  const findFold = () => target?.closest('details:not([open])')
  if (!findFold()) return
  for (let fold = findFold(); fold; fold = findFold()) fold.open = true
  target.scrollIntoView()
}

function filterAgain() {
  for (const input of document.querySelectorAll('[data-filter]')) {
    if (input.value !== '') filter(input)
  }
}

function onClick(event) {
  const button = event.target.closest('button, a')
  if (button === null) return
  if (button.dataset.copy !== undefined) copy(button).catch(() => select(button))
  const dialog = button.closest('dialog')
  if (dialog !== null && button.dataset.close !== undefined) {
    event.preventDefault()
    dialog.close()
  }
}

/** A field of a question in which somebody types. */
const FIELD = 'input:is([type=text], [type=number], [type=password], :not([type]))'

/** Shows a question as a dialog over the page that led to it. */
function onSwap({ detail: { target, xhr } }) {
  if (target?.id !== 'dialog') return
  if (target.firstElementChild === null) {
    location.assign(xhr.responseURL)
    return
  }
  if (!target.open) target.showModal()
  // The focus is in what is asked for, else on Cancel; the question is read from its beginning.
  const field = target.querySelector(`${FIELD}[aria-invalid], ${FIELD}`)
  const next = field ?? target.querySelector('[data-close]')
  next?.focus({ preventScroll: true })
  if (field?.value) field.select?.()
  target.scrollTop = 0
}

/**
 * A refusal is shown when it answers a form, not when a refresh fails. The login page, with what was typed in
 * it, takes the place of all.
 */
function onAnswer({ detail }) {
  const isSent = detail.requestConfig.verb !== 'get'
  if (isSent && detail.xhr.status === 401 && detail.xhr.responseText !== '') {
    detail.shouldSwap = false
    document.open()
    document.write(detail.xhr.responseText)
    document.close()
    return
  }
  if (detail.target?.id === 'dialog' && detail.xhr.status < 500) detail.shouldSwap = true
}

/** An address that differs from this one by its anchor alone would load nothing, and leave the question open. */
function onRedirect(event) {
  const to = event.detail.xhr.getResponseHeader('hx-redirect')
  if (to === null) return
  // The session has ended: what is being typed is kept when it is sent.
  const isRead = event.detail.requestConfig.verb === 'get'
  if (isRead && document.querySelector('form[data-dirty]') !== null) {
    event.preventDefault()
    return
  }
  const { pathname, search, hash } = new URL(to, location)
  if (pathname !== location.pathname || search !== location.search) return
  event.preventDefault()
  location.hash = hash
  location.reload()
}

/** A form that is being edited is not replaced by a refresh (`live.js`); a search within it edits nothing. */
function onInput({ target }) {
  if (target.dataset.filter !== undefined) filter(target)
  else if (target.form?.id !== 'bulk') target.form?.setAttribute('data-dirty', '')
}

/** What a search hides must not keep a form from being sent without a word. */
function onInvalid({ target }) {
  const setting = target.closest('.setting[hidden]')
  if (setting !== null) setting.hidden = false
  target.closest('details:not([open])')?.setAttribute('open', '')
}

/** A form without which the page must not be left once somebody has typed in it. */
let sent = null

function onSend(event) {
  sent = event.target
}

function onLeave(event) {
  const form = document.querySelector('form.careful[data-dirty]')
  if (form !== null && form !== sent) event.preventDefault()
}

document.addEventListener('click', onClick)
document.addEventListener('submit', onSend)
addEventListener('beforeunload', onLeave)
document.addEventListener('invalid', onInvalid, true)
addEventListener('hashchange', reveal)
document.addEventListener('submit', setTheme)
document.addEventListener('input', onInput)
document.addEventListener('htmx:beforeOnLoad', onRedirect)
document.addEventListener('htmx:beforeSwap', onAnswer)
document.addEventListener('htmx:afterSettle', filterAgain)
document.addEventListener('htmx:afterSwap', onSwap)
reveal()
startAges()
startConfiguration()
startSelection()
startKeys()
startLive()
startPalette()
startUploads()
startWall()
