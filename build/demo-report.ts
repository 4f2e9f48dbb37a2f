/** Reports how the demo goes: to people as lines with times, to programs as a line of JSON for each event. */
import { styleText } from 'node:util'
import { GREETING } from '#build/demo/boot-sector.ts'
import type { DemoReport } from '#build/demo/demo.ts'
import { OWN_IMAGE } from '#build/demo/image.ts'
import type { LiveSource } from '#build/demo/live-source.ts'
import { MACHINE } from '#build/demo/machine.ts'
import type { Need } from '#build/demo/needs.ts'
import type { Snapshot, Run, DemoEvent } from '#build/demo/machine-progress.ts'
import type { Outcome } from '#build/demo/watch.ts'
import { renderBytes, renderSeconds } from './progress.ts'
import type { Voice } from '#build/voice/voice.ts'

/** A report from the first check to the end. */
export interface FullReport extends DemoReport {
  begin(): void
  need(need: Need): void
  source(source: LiveSource): void
  /** Something is missing: what to do. */
  advise(lines: readonly string[]): void
  end(ended: Outcome['ended'], seconds: number): void
  /** The demo was ended by Ctrl-C. */
  stopped(folder: string): void
}

const writeJson = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`)
const round = (seconds: number) => Math.round(seconds * 10) / 10

export const createJsonReport = (): FullReport => ({
  begin: () => undefined,
  need: (need) => writeJson({ event: 'need', ...need }),
  source: (source) => writeJson({ event: 'live-system', ...source }),
  advise: (lines) => writeJson({ event: 'missing', lines }),
  prepared: (text) => writeJson({ event: 'prepared', text }),
  busy: () => undefined,
  open: (opened) => writeJson({ event: 'open', ...opened }),
  event: (event, seconds) => writeJson({ ...event, seconds: round(seconds) }),
  watching: () => undefined,
  end: (ended, seconds) => writeJson({ event: 'ended', ended, seconds: round(seconds) }),
  stopped: (folder) => writeJson({ event: 'stopped', folder }),
})

/** `image`: the name of an image of the person's own; null: the demo's. */
export function createTextReport({ say, line }: Voice, image: string | null): FullReport {
  let shown: LineText = { head: '', rest: [] }
  let isMoving = false
  let [url, hasBmc] = ['', false]
  const show = (next: LineText) => {
    shown = next
    if (isMoving) return
    isMoving = true
    line.start(() => shown)
  }
  return {
    begin: () => say.log('Flasher demo: a virtual machine boots from the network and is flashed'),
    need: ({ isMet, text }) => (isMet ? say.success(text) : say.fail(text)),
    source: (source) => sayShown(say, renderSource(source)),
    advise: (lines) => say.box({ title: 'What to do', message: [...new Set(lines)].join('\n') }),
    prepared: (text) => say.success(text),
    busy: (text) => show({ head: text, rest: [] }),
    open(opened) {
      ;({ url, hasBmc } = opened)
      const message = `${opened.url}\nPassword: ${opened.password}`
      say.box({ title: 'Open in a browser', message })
    },
    event(event, seconds) {
      const text = renderEvent(event, image === null ? GREETING : null)
      if (text !== null) {
        sayShown(say, [markOf(event), `${renderClock(seconds)}  ${text}`])
      }
      if (event.event === 'waiting') {
        const message = renderTask({
          isAgain: event.again,
          hasBmc,
          url,
          image: image ?? OWN_IMAGE,
        }).join('\n')
        say.box({ title: 'Your turn', message })
      }
    },
    watching: (snapshot, activity, seconds) =>
      show(renderNow(snapshot, activity, renderClock(seconds))),
    end(ended, seconds) {
      line.stop()
      if (ended === null) say.info('The machine was switched off')
      if (ended !== 'booted') return
      const text = `Flashed, verified and booted in ${renderSeconds(seconds)}`
      say.success(styleText('bold', text, { stream: process.stdout, validateStream: true }))
      say.info('npx pnpm demo: arm it yourself.  npx pnpm start: flash your own machines.')
    },
    stopped(folder) {
      line.stop()
      say.info(`Machine, server and cache have ended. Their state is kept in ${folder}`)
    },
  }
}

type Mark = 'success' | 'info' | 'fail'

const sayShown = (say: Voice['say'], [mark, text]: readonly [Mark, string]) => say[mark](text)

const markOf = ({ event }: Shown): Mark => {
  if (event === 'failed' || event === 'unproved') return 'fail'
  return event === 'flashed' || event === 'booted' || event === 'proved' ? 'success' : 'info'
}

function renderSource(source: LiveSource): readonly [Mark, string] {
  switch (source.from) {
    case 'dist':
      return ['success', `Live system ${source.version} from dist/`]
    case 'state':
      return ['success', `Live system ${source.version} from an earlier run`]
    case 'site':
      return ['info', `Live system: release ${source.site.tag} from ${source.site.url}`]
    case 'build':
      return ['info', 'There is no live system yet: building one, which takes some minutes']
    case 'nowhere':
      return ['fail', 'There is no live system for the machine to boot']
  }
}

interface LineText {
  readonly head: string
  readonly rest: readonly string[]
}

/** What goes on at this moment. */
function renderNow({ machine, run }: Snapshot, activity: string, clock: string): LineText {
  if (run?.state === 'running' || run?.state === 'stalled') return renderRun(clock, run)
  const isIdle = machine?.isArmed === false && machine.disks !== null
  return {
    head: `${clock}  ${isIdle ? 'Waiting to be armed; Ctrl-C ends the demo' : activity}`,
    rest: [],
  }
}

/** ` 1:05`: below one another. */
function renderClock(seconds: number): string {
  const whole = Math.floor(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`.padStart(5)
}

type Shown = DemoEvent | { readonly event: 'restarted' }

/** Null: there is nothing to say, because what follows says it. */
function renderEvent(event: Shown, greeting: string | null): string | null {
  switch (event.event) {
    case 'disks':
      return `It has reported its disk: ${event.size}, serial number ${event.serial}`
    case 'armed':
      return event.image === null ? 'Armed' : `Armed with ${event.image}`
    case 'flashed':
      return renderFlashed(event.run)
    case 'failed':
      return `The flash failed: ${event.reason}`
    case 'to-disk':
      return greeting === null ? 'The server has sent it to its own disk' : null
    default:
      return renderBoot(event, greeting)
  }
}

function renderBoot(
  event: Exclude<Shown, { readonly event: 'disks' | 'armed' | 'flashed' | 'failed' | 'to-disk' }>,
  greeting: string | null,
): string {
  switch (event.event) {
    case 'booted':
      return `It has booted from its disk, which says: ${greeting}`
    case 'proved':
      return `Its new system has called the server: the boot is proved${renderAfter(event.seconds)}`
    case 'unproved':
      return `Its boot is not proved: ${event.reason}`
    default:
      return PLAIN[event.event]
  }
}

const renderAfter = (seconds: number | null) =>
  seconds === null ? '' : `, ${renderSeconds(seconds)} after the flash`

const PLAIN = {
  discovered: `The server has discovered the machine, ${MACHINE.mac}`,
  waiting: 'It is waiting to be armed',
  restarted: 'Restarted, so that it contacts the server again',
  flashing: 'Flashing',
} as const

function renderFlashed({ bytesWritten, averageRate, isVerified }: Run): string {
  const rate = averageRate === null ? '' : ` at ${renderBytes(averageRate)}/s`
  return `${isVerified === true ? 'Flashed and verified' : 'Flashed'}: ${renderBytes(bytesWritten)}${rate}`
}

interface Task {
  readonly isAgain: boolean
  readonly hasBmc: boolean
  readonly url: string
  readonly image: string
}

function renderTask({ isAgain, hasBmc, url, image }: Task): readonly string[] {
  const { mac, serial } = MACHINE
  const open = `1. Open ${url}/${mac}`
  const typed = serial.slice(-4)
  const now = hasBmc
    ? ['   Tick "Turn it on, or restart it, from the network now", so that it begins at once']
    : []
  return isAgain
    ? [
        open,
        `2. Choose Flash again, and confirm that its disk is erased: type ${typed}`,
        ...now,
        '',
        'To begin with a new machine: npx pnpm demo --fresh',
      ]
    : [
        open,
        `2. Select the image ${image} and the disk ${serial}; Flash once is then selected`,
        `3. Choose Review and arm, and confirm that its disk is erased: type ${typed}`,
        ...now,
      ]
}

const BAR_COLUMNS = 24
const PHASES: Readonly<Record<string, string>> = { write: 'Flashing', verify: 'Verifying' }

function renderRun(clock: string, { phase, bytesWritten, totalBytes, rate }: Run): LineText {
  const fraction = totalBytes === null || totalBytes === 0 ? null : bytesWritten / totalBytes
  const done = Math.min(1, fraction ?? 0)
  const full = Math.round(done * BAR_COLUMNS)
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_COLUMNS - full)}`
  const head = `${clock}  ${(PHASES[phase] ?? 'Flashing').padEnd(9)}`
  return {
    head:
      fraction === null ? head : `${head} ${bar} ${String(Math.floor(done * 100)).padStart(3)} %`,
    rest: [
      `  ${renderBytes(bytesWritten)}${totalBytes === null ? '' : ` of ${renderBytes(totalBytes)}`}`,
      ...(rate === null || rate === 0 ? [] : [`  ${renderBytes(rate)}/s`]),
    ],
  }
}
