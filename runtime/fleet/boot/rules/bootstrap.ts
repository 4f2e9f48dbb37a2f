/** The scripts that lead iPXE to the script of its machine, however iPXE was loaded ("/pxe-bootstrap.ipxe"). */
import { backOff, patience, renderScript, START_PAUSE, word } from './ipxe.ts'
import { HELD_MS } from './other-servers.ts'
import { renderHyphens, type Mac } from '../../../kit/net/rules/mac.ts'

/** What iPXE says of itself and its machine, in the query of `/pxe/{mac}`; the host name is DHCP's. */
const ABOUT = '?buildarch=${buildarch}&platform=${platform}&hostname=${hostname:uristring}'

/**
 * UEFI shows its menu after a program that ended well, and goes on with its boot order after one that
 * did not. Firmware's own iPXE, a driver, leaves to the boot order either way.
 */
const LEAVE = ['iseq ${platform} efi && exit 1 ||', 'exit']

/**
 * Renders one chain command. With `mac` (our own iPXE tells that of the card in use) it leads to
 * that machine's script; without, iPXE puts in what its first card has, in the words of the
 * specification. The script of our own iPXE takes an error for no answer, and leaves by one itself.
 */
export function renderBootstrap(base: string, mac: Mac | null): string {
  const machine = mac === null ? '${net0/mac:hexhyp}' : `${renderHyphens(mac)}${ABOUT}`
  return renderScript(chain([`${word(`${base}/pxe/`)}${machine}`], mac === null ? LEAVE : ['exit']))
}

/**
 * Renders `autoexec.ipxe`, which an unmodified iPXE 2.0 fetches from where it came itself. After
 * UEFI HTTP Boot it knows no server, so the script names one. Where there are `others`, it asks one
 * after the other for the machine's script itself, so that a server that dies in between costs a
 * wait and not the patience of its bootstrap.
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
 * One command after the other, until a server answers. A script that ended well has handed over to
 * the firmware, so this one does, too. Before it leaves without an answer of several servers, it asks
 * each of them patiently: one that holds requests would have had the machine wait.
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
