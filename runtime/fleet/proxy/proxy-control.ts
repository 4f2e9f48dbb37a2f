/** The side of flasher-web: says what is wished of the DHCP proxy, as long as the server runs, and reads what it reports. */
import { chmod, lutimes } from 'node:fs/promises'
import { join } from 'node:path'
import { renderError } from '#kit/foundation/fault.ts'
import { makeFolder, removeName, replaceFile } from '#kit/host/folders.ts'
import type { Environment } from '#kit/host/shell.ts'
import { readBounded } from './proxy-files.ts'
import { MAX_REPORT_BYTES, parseReport, type ProxyReport, REPORT_FILE } from './rules/report.ts'
import { type ProxyWish, TOUCH_MS, WISH_FILE } from './rules/wish.ts'

/** Of the unit; `pnpm start --proxy` has another one. */
export const PROXY_FOLDER = '/run/flasher-proxy'

/** systemd's folder for the server, which goes when the server ends, however it does. */
export const wishFolderOf = (env: Environment, stateDir: string): string =>
  env['RUNTIME_DIRECTORY']?.split(':')[0] || join(stateDir, 'proxy')

/** What a server that was killed left must not count until this one says what it wishes. */
export const removeOldWish = (wishFolder: string): Promise<void> =>
  // Whoever opens the state says what is wrong with its folder.
  removeName(join(wishFolder, WISH_FILE)).catch(() => undefined)

/** The folder is there before the program that reads the wish starts. */
export const makeWishFolder = (folder: string): Promise<void> => makeFolder(folder, 0o700)

interface ProxyControlOptions {
  readonly wishFolder: string
  readonly reportFolder: string
  /** Null: off. */
  wish(): ProxyWish | null
  readonly log: { warn(message: string): void }
  now(): Date
}

const LOOK_MS = 1000

/** The wish ends with the server. */
export async function openProxyControl(options: ProxyControlOptions) {
  const { wishFolder, reportFolder, log, now } = options
  const path = join(wishFolder, WISH_FILE)
  await removeName(path)
  let written: string | null = null
  let touchedAt = 0
  let working: Promise<void> | null = null

  async function write(wish: ProxyWish | null): Promise<void> {
    const text = wish === null ? null : `${JSON.stringify(wish)}\n`
    if (text === written && (text === null || performance.now() - touchedAt < TOUCH_MS)) return
    if (text === null) await removeName(path)
    else if (text === written) await lutimes(path, now(), now())
    else {
      await makeWishFolder(wishFolder)
      await replaceFile(path, text, 0o600)
      await chmod(path, 0o600)
    }
    written = text
    touchedAt = performance.now()
  }

  const look = () => {
    working ??= write(options.wish())
      .catch((thrown: unknown) => {
        written = null
        log.warn(`the DHCP proxy: ${renderError(thrown)}`)
      })
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
