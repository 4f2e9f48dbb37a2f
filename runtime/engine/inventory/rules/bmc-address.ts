/** Finds the address of a machine's BMC in what its own device says. */

/** IPv4; `printed`: by `ipmitool lan print` with `LC_ALL=C`. Null: none. */
export function parseBmcAddress(printed: string): string | null {
  const [, address = ''] = /^IP Address +: (\d{1,3}(?:\.\d{1,3}){3})$/m.exec(printed) ?? []
  return address === '' || address === '0.0.0.0' ? null : address
}
