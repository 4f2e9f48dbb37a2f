/** Finds the address of a machine's BMC in what its own device says. */

/** Returns the IPv4 address in what `ipmitool lan print` prints with `LC_ALL=C`; null: it has none. */
export function parseBmcAddress(printed: string): string | null {
  const [, address = ''] = /^IP Address +: (\d{1,3}(?:\.\d{1,3}){3})$/m.exec(printed) ?? []
  return address === '' || address === '0.0.0.0' ? null : address
}
