/** Which sites a machine is in: a site is a network, an address or a label. */
import { isAddressIn } from '../../../kit/net/rules/direct-host.ts'

export interface NearMachine {
  /** Its address as the server sees it; null: not known. */
  readonly ip: string | null
  readonly labels: readonly string[]
}

/** Labels are the same in any case of their letters. */
export const isAt = ({ ip, labels }: NearMachine, site: string): boolean =>
  labels.some((label) => label.toLowerCase() === site.toLowerCase()) ||
  (ip !== null && isAddressIn(ip, site))
