/** Parts of a page that ask for themselves again when there is news: at once, then at their pace, the last time included. */
const resting = new Map()

function tell(part) {
  const rest = resting.get(part.id)
  if (rest !== undefined) {
    rest.again = true
    return
  }
  const begun = { again: false }
  resting.set(part.id, begun)
  globalThis.htmx.trigger(part, 'flasher:news')
  setTimeout(() => {
    resting.delete(part.id)
    const now = document.getElementById(part.id)
    if (begun.again && now !== null) tell(now)
  }, Number(part.dataset.every))
}

export function tellNews() {
  for (const part of document.querySelectorAll('[data-every]')) tell(part)
}
