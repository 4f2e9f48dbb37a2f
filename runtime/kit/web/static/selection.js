/** Selected rows, and the bar of actions on them. */
const boxes = () => [...document.querySelectorAll('#rows .pick input:enabled')]
const selected = () => boxes().filter(({ checked }) => checked)

let last = null

export function show() {
  const bar = document.querySelector('.bulk')
  if (bar === null || bar.hidden) return
  const all = bar.querySelector('[name=all]')
  const count = all?.checked ? Number(all.dataset.total) : selected().length
  bar.classList.toggle('open', count > 0)
  const output = bar.querySelector('output')
  output.textContent = output.dataset.text.replace('{count}', String(count))
  const page = document.querySelector('#pick-page')
  if (page === null) return
  page.checked = boxes().length > 0 && selected().length === boxes().length
  page.indeterminate = selected().length > 0 && !page.checked
}

/** With Shift: everything between the last row and this one. */
function selectRange(box) {
  const list = boxes()
  const [from, to] = [list.indexOf(last), list.indexOf(box)].toSorted((a, b) => a - b)
  if (from < 0) return
  for (const each of list.slice(from, to + 1)) each.checked = box.checked
}

function onClick(event) {
  const box = event.target
  if (!(box instanceof HTMLInputElement)) return
  if (box.id === 'pick-page') for (const each of boxes()) each.checked = box.checked
  else if (box.matches('#rows .pick input')) {
    if (event.shiftKey) selectRange(box)
    last = box
  } else if (box.name !== 'all') return
  show()
}

/** Menus close when somebody goes on elsewhere, or has chosen an action. */
export function closeMenus(event) {
  const open = [...document.querySelectorAll('.menu[open]')]
  const at = event?.target ?? null
  for (const menu of open) {
    if (!menu.contains(at) || at.matches('.bulk .panel button')) menu.open = false
  }
  return open.length > 0
}

/** Enter in a form presses its first button; here that would be the first action of the menu. */
function onKey(event) {
  if (event.key === 'Enter' && event.target.matches('#bulk [type=checkbox]')) event.preventDefault()
}

export function clear() {
  for (const box of boxes()) box.checked = false
  const all = document.querySelector('.bulk [name=all]')
  if (all !== null) all.checked = false
  show()
}

export function startSelection() {
  document.addEventListener('click', onClick)
  document.addEventListener('click', closeMenus)
  document.addEventListener('keydown', onKey)
  document.querySelector('.bulk [type=reset]')?.addEventListener('click', () => setTimeout(show))
  document.addEventListener('flasher:rows', show)
  document.addEventListener('htmx:afterSettle', show)
  show()
}
