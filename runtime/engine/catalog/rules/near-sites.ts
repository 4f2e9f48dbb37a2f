/** Which sites a machine is in: a site is a network, an address or a label. */
import { isAddressIn } from '#kit/net/rules/direct-host.ts'

export interface NearMachine {
  /** As the server sees it; null: unknown. */
  readonly ip: string | null
  readonly labels: readonly string[]
}

/** Labels ignore case. */
export const isAt = ({ ip, labels }: NearMachine, site: string): boolean =>
  labels.some((label) => label.toLowerCase() === site.toLowerCase()) ||
  (ip !== null && isAddressIn(ip, site))
