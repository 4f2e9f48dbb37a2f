/** Keyboard shortcuts, the same on every page; Tab and Enter do the same. `/ui/keys` lists them. */
import { openPalette } from './palette.js'
import { clear, closeMenus, show } from './selection.js'

/** How long the second key of `g m` is waited for. */
const SECOND_MS = 1500

/** Tables and lists whose rows can be walked. */
const ROWS = '#rows tr, main .rows > li'
/** What the focus goes to in a row. */
const TARGET = 'th > a, a, button, input:enabled'

const rows = () => [...document.querySelectorAll(ROWS)].filter((each) => each.querySelector(TARGET))
const row = () => document.activeElement?.closest(ROWS) ?? null
const isTyping = (target) =>
  target instanceof Element &&
  target.closest(
    'input:not([type=checkbox], [type=radio]), select, textarea, dialog, [contenteditable]',
  ) !== null

function move(by) {
  const list = rows()
  const at = list.indexOf(row())
  const next = list[at === -1 ? (by > 0 ? 0 : list.length - 1) : at + by]
  const target = next?.querySelector('th > a') ?? next?.querySelector(TARGET)
  target?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

function toggle() {
  const box = row()?.querySelector('.pick input')
  if (!box || box.disabled) return
  box.checked = !box.checked
  show()
}

/** The selected rows, else the row with the focus. */
function flash() {
  const button = document.querySelector('.bulk button[value=flash]')
  if (button === null) return
  if (document.querySelector('#rows .pick :checked, .bulk [name=all]:checked') === null) toggle()
  if (document.querySelector('#rows .pick :checked, .bulk [name=all]:checked') === null) return
  button.click()
}

function assign() {
  const link = document.querySelector('#bulk') && row()?.querySelector('th > a')
  if (link) location.assign(`${link.href}#intent`)
}

/** Closes the open menu and gives the focus back to its button. */
function leaveMenu() {
  const button = document.activeElement?.closest('.menu')?.querySelector('summary')
  const wasOpen = closeMenus()
  if (wasOpen) button?.focus()
  return wasOpen
}

function search() {
  const field = document.querySelector('main #q')
  if (field === null) openPalette()
  else field.focus()
}

let begunAt = 0

/** `g m`: the second key leads to a section that is open to who looks. */
const findSection = (key) => document.querySelector(`.side [data-key="${CSS.escape(key)}"]`)

const KEYS = {
  '/': search,
  j: () => move(1),
  k: () => move(-1),
  x: toggle,
  a: assign,
  f: flash,
  '?': () => document.querySelector('[data-keys][href]')?.click(),
  g: () => (begunAt = Date.now()),
}

/** The search of everything; a program that has none has that of its list. */
function find() {
  if (document.querySelector('#palette') !== null) openPalette()
  else (document.querySelector('#find') ?? document.querySelector('main #q'))?.focus()
}

/** Keys that are no character: they stay when the others are switched off. */
function onOther(event) {
  const isFind = (event.ctrlKey || event.metaKey) && !event.altKey && event.key === 'k'
  if (isFind && document.querySelector('#palette, #find, main #q') !== null) {
    event.preventDefault()
    find()
    return true
  }
  if (event.key !== 'Escape') return false
  if (event.target.id === 'q') event.target.blur()
  if (!leaveMenu() && !isTyping(event.target)) clear()
  return true
}

function onKey(event) {
  if (onOther(event) || document.body.dataset.keys === undefined) return
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
  const isSecond = Date.now() - begunAt < SECOND_MS
  begunAt = 0
  const section = isSecond ? findSection(event.key) : null
  const act = section === null ? KEYS[event.key] : () => section.click()
  if (act === undefined) return
  event.preventDefault()
  act()
}

export function startKeys() {
  document.addEventListener('keydown', onKey)
}
