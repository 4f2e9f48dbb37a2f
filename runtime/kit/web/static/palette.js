/** The search of everything as a dialog (Ctrl-K): a combobox whose options are links; without scripts, a form. */

const WAIT_MS = 120
const MAX_RECENT = 8
const STORE = 'flasher-recent'

const dialog = () => document.querySelector('#palette')
const list = () => document.querySelector('#palette-list')
const field = () => dialog().querySelector('input')
const options = () => [...list().querySelectorAll('[role=option]')]

let asked = null
let timer = null

/** What was opened before, the newest first: in this browser alone, until somebody logs out. */
function readRecent() {
  try {
    const stored = JSON.parse(localStorage.getItem(STORE) ?? '[]')
    return Array.isArray(stored) ? stored.filter(isEntry).slice(0, MAX_RECENT) : []
  } catch {
    return [] // Storage that is switched off, or holds something else, remembers nothing.
  }
}

const isEntry = (entry) =>
  typeof entry?.title === 'string' && /^\/(?![/\\])/.test(entry?.href ?? '')

function remember(option) {
  const [href, title] = [option.getAttribute('href'), option.querySelector('bdi').textContent]
  const others = readRecent().filter((entry) => entry.href !== href)
  try {
    localStorage.setItem(STORE, JSON.stringify([{ href, title }, ...others].slice(0, MAX_RECENT)))
  } catch {
    // The same.
  }
}

/** A field named `action` hides the form's own. */
function forget({ target }) {
  if (target.getAttribute('action')?.endsWith('/ui/logout')) localStorage.removeItem(STORE)
}

/** Those whose titles have all that was typed. */
function renderRecent(text, found) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const recent = readRecent().filter(({ title }) =>
    words.every((word) => title.toLowerCase().includes(word)),
  )
  if (recent.length === 0) return
  const group = document.createElement('div')
  group.setAttribute('role', 'group')
  group.setAttribute('aria-label', list().dataset.recent)
  const head = document.createElement('p')
  head.setAttribute('aria-hidden', 'true')
  head.textContent = list().dataset.recent
  group.append(head)
  for (const { href, title } of recent) {
    // What is recent is listed once.
    found.querySelector(`[role=option][href="${CSS.escape(href)}"]`)?.remove()
    const option = document.createElement('a')
    option.setAttribute('role', 'option')
    option.tabIndex = -1
    option.setAttribute('href', href)
    const shown = document.createElement('bdi')
    shown.textContent = title
    option.append(shown)
    group.append(option)
  }
  for (const each of found.querySelectorAll('[role=group]')) {
    if (each.querySelector('[role=option]') === null) each.remove()
  }
  found.prepend(group)
}

function show(text, html) {
  const template = document.createElement('template')
  template.innerHTML = html
  renderRecent(text, template.content)
  list().replaceChildren(template.content)
  const count = options().length
  for (const [at, option] of options().entries()) option.id = `option-${at}`
  if (count === 0) list().textContent = list().dataset.none
  field().setAttribute('aria-expanded', String(count > 0))
  document.querySelector('#spoken').textContent = list().dataset.found.replace(
    '{count}',
    String(count),
  )
  select(options()[0] ?? null)
}

function select(option) {
  for (const each of options()) each.setAttribute('aria-selected', String(each === option))
  if (option === null) {
    field().removeAttribute('aria-activedescendant')
    return
  }
  field().setAttribute('aria-activedescendant', option.id)
  option.scrollIntoView({ block: 'nearest' })
}

const selected = () => options().find((each) => each.getAttribute('aria-selected') === 'true')

function move(by) {
  const all = options()
  const at = all.indexOf(selected())
  if (all.length > 0) select(all[(at + by + all.length) % all.length])
}

/** What was asked before is not waited for. */
async function ask() {
  const text = field().value
  asked?.abort()
  asked = new AbortController()
  const address = `${field().form.getAttribute('action')}?list=1&q=${encodeURIComponent(text)}`
  try {
    const answer = await fetch(address, { signal: asked.signal })
    // A session that has ended answers with the login page.
    if (!answer.ok || answer.redirected) location.reload()
    else show(text, await answer.text())
  } catch (error) {
    if (error.name !== 'AbortError') show(text, '')
  }
}

function onInput() {
  clearTimeout(timer)
  timer = setTimeout(ask, WAIT_MS)
}

/** Enter before the list has come sends the form: the page of the search shows the same. */
function onKey(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (by !== undefined) move(by)
  else if (event.key === 'Enter' && selected() !== undefined) selected().click()
  else return
  event.preventDefault()
}

/** Opens the dialog with the text that stands in the head's field. */
export function openPalette() {
  if (dialog() === null || document.querySelector('dialog[open]') !== null) return
  field().value = document.querySelector('#find')?.value ?? ''
  dialog().showModal()
  field().select()
  ask()
}

function onClick(event) {
  const link = event.target.closest('.find-link')
  if (link !== null) event.preventDefault()
  if (link !== null || event.target.matches('#find')) openPalette()
  if (event.target === dialog()) dialog().close()
  const option = event.target.closest('#palette-list [role=option]')
  if (option === null) return
  remember(option)
  // A link to an anchor of this page loads nothing.
  dialog().close()
}

export function startPalette() {
  if (dialog() === null) return
  field().addEventListener('input', onInput)
  field().addEventListener('keydown', onKey)
  document.addEventListener('click', onClick)
  document.addEventListener('submit', forget)
}
