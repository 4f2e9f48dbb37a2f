/** Fills a stick by the File System Access API, and reads everything back. */
import { bytesOf, openRelease, Refusal } from './zip.js'

const CHUNK_BYTES = 4 * 2 ** 20
/** FAT32 keeps sizes in 32 bits. */
const MAX_FILE_BYTES = 2 ** 32 - 1
const IMAGES = 'flasher-images'
const IMAGE_NAME = /^[^\\/:*?"<>|]+\.(img|img\.zst|img\.xz|img\.gz|img\.bz2|qcow2)$/i
/** What systems put on every stick that they see. */
const OF_SYSTEMS = new Set([
  'System Volume Information',
  '$RECYCLE.BIN',
  '.Spotlight-V100',
  '.Trashes',
  '.fseventsd',
  '.TemporaryItems',
  '.DS_Store',
  'LOST.DIR',
])

const $ = (id) => document.getElementById(id)
const release = JSON.parse($('release').textContent)

/** Ends the copy that runs, if one does. */
let cancelling = null
/** Whether the stick may have only some of its files. */
let isWriting = false

const show = (id, isShown) => {
  $(id).hidden = !isShown
}

function say(kind, text) {
  $('outcome').dataset.kind = kind
  $('outcome').textContent = text
  if (text !== '') $('outcome').focus()
}

const UNITS = ['B', 'kB', 'MB', 'GB']

function renderSize(bytes) {
  const at = bytes < 1000 ? 0 : Math.min(3, Math.floor(Math.log10(bytes) / 3))
  return `${(bytes / 1000 ** at).toFixed(at === 0 ? 0 : 1)} ${UNITS[at]}`
}

const renderTime = (seconds) =>
  seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`

/** Counts what is written and what is read back: each byte twice. */
function createMeter(total) {
  const began = performance.now()
  let [done, shown] = [0, -Infinity]
  return (bytes, doing) => {
    done += bytes
    const now = performance.now()
    if (now - shown < 250 && done < total) return
    shown = now
    const rate = done / Math.max(0.001, (now - began) / 1000)
    $('bar').value = total === 0 ? 1 : done / total
    const left = now - began < 1000 ? '' : `, ${renderTime((total - done) / rate)} left`
    $('doing').textContent =
      `${doing}: ${Math.floor((100 * done) / Math.max(1, total))} %, ${renderSize(rate)}/s${left}`
  }
}

function checkImages(files) {
  for (const { name, size } of files) {
    if (size > MAX_FILE_BYTES) {
      throw new Refusal(
        `${name} has ${renderSize(size)}. A FAT32 stick holds only files below 4 GiB: compress it to .img.zst, or use a server.`,
      )
    }
    if (!IMAGE_NAME.test(name) || name.startsWith('.')) {
      throw new Refusal(
        `${name} is no disk image by its name. Images end in .img, .img.zst, .img.xz, .img.gz, .img.bz2 or .qcow2.`,
      )
    }
  }
  return files.map((file) => ({ path: `${IMAGES}/${file.name}`, blob: file }))
}

/** Firmware starts this one. */
const STARTS = 'EFI/BOOT/BOOTX64.EFI'

/**
 * Lists the files in two steps, what firmware looks at last: the second step begins once the first one
 * was read back, so that only a stick that has everything starts.
 */
function listSteps(files) {
  const before = files.filter(({ path }) => path !== STARTS)
  const inOrder = [
    ...before.filter(({ path }) => !path.startsWith('EFI/')),
    ...before.filter(({ path }) => path.startsWith('EFI/')),
  ]
  return [inOrder, files.filter(({ path }) => path === STARTS)]
}

async function listNames(folder) {
  const names = []
  for await (const name of folder.keys()) {
    if (!OF_SYSTEMS.has(name) && !name.startsWith('.Trash-')) names.push(name)
  }
  return names.toSorted()
}

/** Resolves to whether the person wants to copy into a folder with these names. */
function askAboutNames(folder, names) {
  const some = names.slice(0, 5).join(', ')
  const rest = names.length > 5 ? ` and ${names.length - 5} more` : ''
  $('there').textContent = `${folder.name || 'The folder'} has ${some}${rest}.`
  show('ask', true)
  $('ask-title').focus()
  return new Promise((resolve) => {
    const asked = new AbortController()
    const listen = (id, isWanted) => {
      const answer = () => {
        asked.abort()
        show('ask', false)
        resolve(isWanted)
      }
      $(id).addEventListener('click', answer, { signal: asked.signal })
    }
    listen('go-on', true)
    listen('back', false)
  })
}

async function openFile(top, path, create) {
  const steps = path.split('/')
  let folder = top
  for (const step of steps.slice(0, -1)) {
    folder = await folder.getDirectoryHandle(step, { create })
  }
  return await folder.getFileHandle(steps.at(-1), { create })
}

async function writeFile(top, { path, blob }, { signal, count }) {
  const handle = await openFile(top, path, true)
  const stream = await handle.createWritable()
  try {
    for (let at = 0; at < blob.size; at += CHUNK_BYTES) {
      signal.throwIfAborted()
      const chunk = blob.slice(at, at + CHUNK_BYTES)
      await stream.write(chunk)
      count(chunk.size, `Writing ${path}`)
    }
  } catch (error) {
    // What it held before stays.
    await stream.abort().catch(() => undefined)
    throw error
  }
  await stream.close()
}

async function compareFile(top, { path, blob }, { signal, count }) {
  const there = await (await openFile(top, path, false)).getFile()
  if (there.size !== blob.size)
    throw new Refusal(`${path} is incomplete on the stick. Start again, or use another stick.`)
  for (let at = 0; at < blob.size; at += CHUNK_BYTES) {
    signal.throwIfAborted()
    const [wanted, found] = await Promise.all(
      [blob, there].map((one) => bytesOf(one.slice(at, at + CHUNK_BYTES))),
    )
    if (wanted.some((byte, index) => byte !== found[index])) {
      throw new Refusal(
        `${path} is different on the stick. The stick may be damaged: use another one.`,
      )
    }
    count(wanted.length, `Reading back ${path}`)
  }
}

/** A stick that was filled before starts nothing while its files are replaced. */
async function removeStart(top) {
  let folder = top
  const steps = STARTS.split('/')
  try {
    for (const step of steps.slice(0, -1)) folder = await folder.getDirectoryHandle(step)
    await folder.removeEntry(steps.at(-1))
  } catch (error) {
    if (error.name !== 'NotFoundError') throw error
  }
}

/** Writes all files, then reads all of them: a read that comes late is less likely to come from memory. */
async function fill(top, files, signal) {
  const count = createMeter(2 * files.reduce((sum, { blob }) => sum + blob.size, 0))
  await removeStart(top)
  for (const step of listSteps(files)) {
    for (const file of step) await writeFile(top, file, { signal, count })
    for (const file of step) await compareFile(top, file, { signal, count })
  }
}

const SENTENCES = {
  AbortError: 'Cancelled.',
  NotAllowedError: 'The browser was not allowed to write there. Start again and allow it.',
  NotFoundError: 'The stick or a file is gone. Plug the stick in and start again.',
  NotReadableError: 'A file cannot be read: the stick or the archive is gone or damaged.',
  QuotaExceededError: 'The stick is full.',
  NoModificationAllowedError: 'The stick is write-protected, or a file on it is in use.',
}

function explain(error) {
  if (error instanceof Refusal) return error.message
  return SENTENCES[error.name] ?? `Copying failed: ${error.message}`
}

/** The steps of a copy; each may throw what `explain` has a sentence for. */
async function copy(top, signal) {
  const [zip] = $('zip').files
  const images = checkImages([...$('images').files])
  const names = await listNames(top)
  if (names.length > 0 && !(await askAboutNames(top, names))) {
    say('cancelled', 'Nothing was copied.')
    return
  }
  show('progress', true)
  show('cancel', true)
  const files = await openRelease(zip, release, (path) => {
    signal.throwIfAborted()
    $('doing').textContent = `Verifying ${zip.name}: ${path}`
  })
  const all = [...files, ...images]
  isWriting = true
  await fill(top, all, signal)
  isWriting = false
  const bytes = all.reduce((sum, { blob }) => sum + blob.size, 0)
  say(
    'done',
    `Done: ${all.length} files, ${renderSize(bytes)}, all read back and equal. Eject the stick, then start a PC from it.`,
  )
}

async function start(event) {
  event.preventDefault()
  say('', '')
  isWriting = false
  const controller = new AbortController()
  let top
  try {
    top = await window.showDirectoryPicker({ id: 'flasher-stick', mode: 'readwrite' })
  } catch (error) {
    if (error.name !== 'AbortError') say('failed', explain(error))
    return
  }
  cancelling = controller
  $('start').disabled = true
  try {
    await copy(top, controller.signal)
  } catch (error) {
    // A refusal says itself what to do.
    const isHalf = isWriting && !(error instanceof Refusal)
    const half = isHalf ? ' The stick is incomplete: start again.' : ''
    say('failed', `${explain(error)}${half}`)
  } finally {
    cancelling = null
    $('start').disabled = false
    show('cancel', false)
    show('progress', false)
  }
}

/** Pages from plain HTTP may not write files, nor pages in browsers that have no picker. */
function explainElsewhere() {
  if (!window.isSecureContext) {
    $('why').textContent =
      'Browsers do not let a page from plain HTTP write files. Save this page and open the saved file in Chrome, Edge or another Chromium browser.'
    show('save', true)
  } else {
    $('why').textContent =
      'This browser does not let a page write files. Open it in Chrome, Edge or another Chromium browser on a computer, or unpack flasher.zip to the top of the stick with a program of your computer.'
  }
  show('elsewhere', true)
  $('start').disabled = true
}

if (window.isSecureContext && typeof window.showDirectoryPicker === 'function') {
  $('fill').addEventListener('submit', start)
  $('cancel').addEventListener('click', () => cancelling?.abort())
  // Whoever closes the page in the middle of a copy is asked first.
  window.addEventListener('beforeunload', (event) => {
    if (cancelling !== null && isWriting) event.preventDefault()
  })
} else {
  explainElsewhere()
}
