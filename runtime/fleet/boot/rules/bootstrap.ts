/** The scripts that lead iPXE to the script of its machine, however iPXE was loaded ("/pxe-bootstrap.ipxe"). */
import { backOff, patience, renderScript, START_PAUSE, word } from './ipxe.ts'
import { HELD_MS } from './other-servers.ts'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'

/** What iPXE tells of its machine in the query of `/pxe/{mac}`; the host name is DHCP's. */
const ABOUT = '?buildarch=${buildarch}&platform=${platform}&hostname=${hostname:uristring}'

/**
 * On UEFI a program that ends well leads to the menu, a failed one to the next boot entry.
 * Firmware's own iPXE, a driver, continues either way.
 */
const LEAVE = ['iseq ${platform} efi && exit 1 ||', 'exit']

/**
 * With `mac` (our own iPXE knows the card in use) it leads to that machine's script; else iPXE
 * inserts its first card's, as in the specification. Our own iPXE's script takes an error for no
 * answer, and exits with one itself, so this one ends well.
 */
export function renderBootstrap(base: string, mac: Mac | null): string {
  const machine = mac === null ? '${net0/mac:hexhyp}' : `${renderHyphens(mac)}${ABOUT}`
  return renderScript(chain([`${word(`${base}/pxe/`)}${machine}`], mac === null ? LEAVE : ['exit']))
}

/**
 * `autoexec.ipxe`, which a plain iPXE 2.0 fetches from its own source. After UEFI HTTP Boot it
 * knows no server, so the script names one. With `others`, it asks each for the machine's script
 * itself: a server that dies in between costs a wait, not the patience of its bootstrap.
 */
export function renderAutoexec(base: string, others: readonly string[] = []): string {
  const urls =
    others.length === 0
      ? [`${word(`${base}/pxe-bootstrap.ipxe`)}?mac=${OWN_MAC}`]
      : [base, ...others].map((server) => `${word(`${server}/pxe/`)}${OWN_MAC}${ABOUT}`)
  return renderScript(['isset ${ip} || dhcp || goto end', ...chain(urls, LEAVE)])
}

const OWN_MAC = '${mac:hexhyp}'

/**
 * Asks until a server answers. A script that ended well has handed over to the firmware, so this
 * one ends well, too. At last it asks each of several servers patiently: one that holds requests
 * would have had the machine wait.
 */
function chain(urls: readonly string[], leave: readonly string[]): readonly string[] {
  const others = urls.slice(1)
  const ask = (waitMs?: number) =>
    urls.map((url) => `chain ${patience(others, waitMs)}${url} && goto end ||`)
  return [
    START_PAUSE,
    ':try',
    ...ask(),
    ...backOff('no answer from the server', 'try', others.length === 0 ? 'end' : 'held'),
    ...(others.length === 0 ? [] : [':held', ...ask(HELD_MS)]),
    ':end',
    ...leave,
  ]
}
