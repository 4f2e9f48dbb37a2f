/** Keyboard shortcuts of the tables of machines and runs; Tab and Enter do the same. */
import { clear, closeMenus, show } from './selection.js'

const links = () => [...document.querySelectorAll('#rows th > a')]
const row = () => document.activeElement?.closest('#rows tr') ?? null
const isTyping = (target) =>
  target instanceof Element &&
  target.closest('input:not([type=checkbox], [type=radio]), select, textarea, dialog') !== null

function move(by) {
  const list = links()
  const at = list.indexOf(row()?.querySelector('th > a'))
  const next = list[at === -1 ? (by > 0 ? 0 : list.length - 1) : at + by]
  next?.focus()
  next?.closest('tr').scrollIntoView({ block: 'nearest' })
}

function toggle() {
  const box = row()?.querySelector('.pick input')
  if (!box || box.disabled) return
  box.checked = !box.checked
  show()
}

/** The selected rows, else the row with the focus. */
function flash() {
  const form = document.querySelector('#bulk')
  if (form?.elements.action === undefined) return
  if (document.querySelector('#rows .pick :checked, .bulk [name=all]:checked') === null) toggle()
  if (document.querySelector('#rows .pick :checked, .bulk [name=all]:checked') === null) return
  form.elements.action.value = 'flash'
  form.requestSubmit()
}

function assign() {
  const link = row()?.querySelector('th > a')
  if (link) location.assign(`${link.href}#intent`)
}

/** Closes the open menu and gives the focus back to its button. */
function leaveMenu() {
  const button = document.activeElement?.closest('.menu')?.querySelector('summary')
  const wasOpen = closeMenus()
  if (wasOpen) button?.focus()
  return wasOpen
}

const KEYS = {
  '/': () => document.querySelector('#q')?.focus(),
  j: () => move(1),
  k: () => move(-1),
  x: toggle,
  a: assign,
  f: flash,
  '?': () => document.querySelector('#keys')?.showModal(),
  Escape: clear,
}

export function startKeys() {
  if (document.querySelector('#rows') === null) return
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && event.target.id === 'q') event.target.blur()
    if (event.key === 'Escape' && leaveMenu()) return
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    const act = KEYS[event.key]
    if (act === undefined) return
    event.preventDefault()
    act()
  })
}
