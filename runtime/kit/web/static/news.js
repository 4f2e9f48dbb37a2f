/** Parts of a page that refresh on news: at once, then at most at their own pace, and once after the last news. */
const waiting = new Map()

function refresh(part) {
  const pause = waiting.get(part.id)
  if (pause !== undefined) {
    pause.again = true
    return
  }
  const started = { again: false }
  waiting.set(part.id, started)
  globalThis.htmx.trigger(part, 'flasher:news')
  setTimeout(() => {
    waiting.delete(part.id)
    const now = document.getElementById(part.id)
    if (started.again && now !== null) refresh(now)
  }, Number(part.dataset.every))
}

export function refreshParts() {
  for (const part of document.querySelectorAll('[data-every]')) refresh(part)
}
