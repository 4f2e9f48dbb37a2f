/** The side of flasher-web: says what is wished of the DHCP proxy, as long as the server runs, and reads what it reports. */
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { renderError } from '#kit/foundation/fault.ts'
import { makeFolder, removeName, replaceFile } from '#kit/host/folders.ts'
import { readBounded } from './proxy-files.ts'
import { MAX_REPORT_BYTES, parseReport, type ProxyReport, REPORT_FILE } from './rules/report.ts'
import { type ProxyWish, WISH_FILE } from './rules/wish.ts'

/** Of the unit; `pnpm start --proxy` has another one. */
export const PROXY_FOLDER = '/run/flasher-proxy'
/** Below the state folder. */
const WISH_FOLDER = 'proxy'

/** The folder is there before the program that reads the wish starts. */
export async function makeWishFolder(stateDir: string): Promise<string> {
  const folder = join(stateDir, WISH_FOLDER)
  await makeFolder(folder, 0o700)
  return folder
}

interface ProxyControlOptions {
  readonly stateDir: string
  readonly reportFolder: string
  /** Null: off. */
  wish(): ProxyWish | null
  readonly log: { warn(message: string): void }
  now(): Date
}

const LOOK_MS = 1000

/** The wish ends with the server. */
export async function openProxyControl(options: ProxyControlOptions) {
  const { stateDir, reportFolder, log, now } = options
  const wishFolder = join(stateDir, WISH_FOLDER)
  const path = join(wishFolder, WISH_FILE)
  await removeName(path)
  let written: string | null = null
  let working: Promise<void> | null = null

  async function write(wish: ProxyWish | null): Promise<void> {
    const text = wish === null ? null : `${JSON.stringify(wish)}\n`
    if (text === written) return
    if (text === null) await removeName(path)
    else {
      await makeWishFolder(stateDir)
      await replaceFile(path, text, 0o600)
      await chmod(path, 0o600)
    }
    written = text
  }

  const look = () => {
    working ??= write(options.wish())
      .catch((thrown: unknown) => log.warn(`the DHCP proxy: ${renderError(thrown)}`))
      .finally(() => {
        working = null
      })
    return working
  }

  const timer = setInterval(() => void look(), LOOK_MS).unref()

  return {
    wished: options.wish,
    look,
    /** Null: no proxy runs. */
    async report(): Promise<ProxyReport | null> {
      const bytes = await readBounded(join(reportFolder, REPORT_FILE), MAX_REPORT_BYTES).catch(
        () => null,
      )
      return bytes === null ? null : parseReport(bytes.toString('utf8'), now())
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await working
      await removeName(path)
    },
  }
}
