/** Uploads files with progress: images in parts that are resumed, other files one by one. */

/** Seconds between attempts; the last one repeats. */
const PAUSES = [1, 2, 4, 8, 15]
/** The answers after which the same request may succeed; 0: none came. */
const PASSING = new Set([0, 408, 429, 500, 502, 503, 504])
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

/** What is said to people: of the form's `data-texts`, the same on all forms of a page. */
let texts = {}

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '')

/** A refusal in the words of the server. */
class Refusal extends Error {}

function size(bytes) {
  const at = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** at
  return `${at === 0 || value >= 99.95 ? Math.round(value) : value.toPrecision(3)} ${UNITS[at]}`
}

function duration(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}

/** Resolves with status and text, also when the connection was lost (status 0) or it was aborted. */
function send(upload, { method, url, headers = {}, body = null, onProgress }) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest()
    upload.request = request
    request.open(method, url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.addEventListener('progress', ({ loaded }) => onProgress?.(loaded))
    request.addEventListener('loadend', () => {
      resolve({ status: request.status, text: request.responseText })
    })
    request.send(body)
  })
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1)

/** The sentence for a person. */
function explain({ status, text }, name) {
  if (status === 0) return texts.lost
  if (status === 401) return texts.loggedOut
  const { detail } = parse(text)
  if (Array.isArray(detail)) {
    const reason = detail[0]?.msg
    return reason ? fill(texts.invalid, { name, reason }) : fill(texts.refused, { name })
  }
  if (typeof detail !== 'string') return fill(texts.status, { status })
  return `${detail.startsWith(name) ? detail : capitalize(detail)}.`
}

const isGood = ({ status }) => status >= 200 && status < 300

/** Below the form: a bar with amount, speed and time left, a button that cancels, and messages. */
function createView(form) {
  const view = document.createElement('div')
  view.className = 'upload'
  const [bar, text, cancel, message] = ['progress', 'span', 'button', 'p'].map((name) =>
    document.createElement(name),
  )
  cancel.type = 'button'
  cancel.textContent = texts.cancel
  message.setAttribute('role', 'status')
  bar.setAttribute('aria-label', texts.label)
  view.append(bar, text, cancel, message)
  form.after(view)
  const samples = []
  return {
    cancel,
    show(isRunning) {
      for (const each of [bar, text, cancel]) each.hidden = !isRunning
      for (const each of form.elements) each.disabled = isRunning
    },
    say(words, isError = false) {
      message.textContent = words
      message.className = isError ? 'error' : ''
    },
    /** The speed is that of the last five seconds. */
    progress(done, total) {
      const now = performance.now()
      samples.push([now, done])
      while (samples.length > 2 && now - samples[0][0] > 5000) samples.shift()
      const [since, before] = samples[0]
      const rate = ((done - before) * 1000) / Math.max(1, now - since)
      bar.max = total
      bar.value = done
      const amounts = { done: size(done), total: size(total) }
      text.textContent =
        rate > 0
          ? fill(texts.pace, {
              ...amounts,
              rate: size(rate),
              time: duration((total - done) / rate),
            })
          : fill(texts.progress, amounts)
    },
  }
}

const pause = (seconds) =>
  new Promise((resolve) => {
    setTimeout(resolve, seconds * 1000)
  })

const isPassing = ({ status }) => PASSING.has(status)
/** Another part may still be on its way in. */
const isPassingPart = ({ status }) => status === 409 || PASSING.has(status)

/** Repeats `attempt` until it is answered for good. The wait grows while nothing works. */
async function insist(upload, name, attempt, mayPass = isPassing) {
  for (let tries = 0; ; tries += 1) {
    const answer = await attempt(tries)
    if (upload.isCancelled) throw new Refusal(texts.cancelled)
    if (isGood(answer)) return answer
    if (!mayPass(answer)) throw new Refusal(explain(answer, name))
    upload.view.say(texts.continues)
    await pause(PAUSES[Math.min(tries, PAUSES.length - 1)])
    if (upload.isCancelled) throw new Refusal(texts.cancelled)
  }
}

async function create(upload, file, sha256) {
  const fields = { name: file.name, size_bytes: file.size, version: String(file.lastModified) }
  const answer = await send(upload, {
    method: 'POST',
    url: '/uploads',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(sha256 === '' ? fields : { ...fields, sha256 }),
  })
  if (!isGood(answer)) throw new Refusal(explain(answer, file.name))
  return parse(answer.text)
}

/** Sends the part at `offset`; after a failure it first asks how far the server came. */
async function sendPart(upload, file, offset, length) {
  let from = offset
  const attempt = async (tries) => {
    if (tries > 0) {
      const found = await send(upload, { method: 'GET', url: upload.url })
      if (!isGood(found)) return found
      from = parse(found.text).offset
      if (from !== offset) return found
    }
    const to = Math.min(file.size, from + length)
    return send(upload, {
      method: 'PATCH',
      url: upload.url,
      headers: {
        'content-range': `bytes ${from}-${to - 1}/${file.size}`,
        'content-type': 'application/octet-stream',
      },
      body: file.slice(from, to),
      onProgress: (loaded) => upload.view.progress(from + loaded, file.size),
    })
  }
  const answer = await insist(upload, file.name, attempt, isPassingPart)
  upload.view.say('')
  return parse(answer.text).offset
}

/** Where the answer was lost, the upload is gone because it is complete. */
async function complete(upload, file) {
  for (;;) {
    const { status } = await insist(upload, file.name, async (tries) => {
      const answer = await send(upload, { method: 'POST', url: `${upload.url}/complete` })
      return tries > 0 && answer.status === 404 ? { status: 200 } : answer
    })
    if (status !== 202) return
    // It is still being verified.
    upload.view.say(texts.checking)
    await pause(PAUSES[1])
    if (upload.isCancelled) throw new Refusal(texts.cancelled)
  }
}

async function uploadImage(upload, form) {
  const [file] = form.querySelector('input[type="file"]').files
  const sha256 = form.elements['upload-sha256'].value.trim()
  const { id, offset } = await create(upload, file, sha256)
  upload.url = `/uploads/${id}`
  const length = Number(form.dataset.part)
  for (let at = offset; at < file.size;) at = await sendPart(upload, file, at, length)
  upload.view.say(texts.checking)
  await complete(upload, file)
  return file.name
}

const isList = ({ name }) => name.endsWith('.sha256')

/** Checksums go first: the server compares what follows with them. */
async function uploadFiles(upload, form) {
  const files = [...form.querySelector('input[type="file"]').files]
  const total = files.reduce((sum, file) => sum + file.size, 0)
  let done = 0
  for (const file of [...files.filter(isList), ...files.filter((each) => !isList(each))]) {
    const answer = await send(upload, {
      method: 'PUT',
      url: `${form.dataset.to}${encodeURIComponent(file.name)}`,
      headers: { 'content-type': 'application/octet-stream' },
      body: file,
      onProgress: (loaded) => upload.view.progress(done + loaded, total),
    })
    if (upload.isCancelled) throw new Refusal(texts.cancelled)
    if (!isGood(answer)) throw new Refusal(explain(answer, file.name))
    done += file.size
  }
  return files.length
}

const KINDS = { image: uploadImage, files: uploadFiles }

function start(form) {
  const view = createView(form)
  let running = null
  // Enables the button, too, which is disabled until this script has the form.
  view.show(false)

  async function run() {
    running = { view, isCancelled: false, request: null, url: null }
    const upload = running
    try {
      const work = KINDS[form.dataset.upload](upload, form)
      view.say('')
      view.show(true)
      const done = await work
      running = null
      location.assign(`${form.dataset.done}${encodeURIComponent(done)}`)
    } catch (error) {
      running = null
      view.show(false)
      view.say(error instanceof Refusal ? error.message : texts.unreadable, true)
      if (upload.isCancelled && upload.url !== null) await discard(upload)
    }
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (running === null) run()
  })
  view.cancel.addEventListener('click', () => {
    if (running === null) return
    running.isCancelled = true
    running.request?.abort()
  })
  addEventListener('beforeunload', (event) => {
    if (running !== null) event.preventDefault()
  })
}

/** The server may still be at the part that was aborted. */
async function discard(upload) {
  for (const seconds of PAUSES) {
    const { status } = await send(upload, { method: 'DELETE', url: upload.url })
    if (status !== 409) return
    await pause(seconds)
  }
}

export function startUploads() {
  for (const form of document.querySelectorAll('form[data-upload]')) {
    texts = JSON.parse(form.dataset.texts)
    start(form)
  }
}
