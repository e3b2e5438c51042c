// Addresses of stores may hold a password: it is never shown.

/** Of what may be no URL at all: from the first colon behind the scheme to the last @. */
export function withoutPassword(address: string): string {
  return address.replace(/:(?!\/\/)[^]*@/u, ":…@");
}

/** What to add about an address that is no URL, when that may be for its password. */
export function passwordHint(address: string): string {
  const isBroken = address.includes("@") && !URL.canParse(address);
  return isBroken ? " What is special in a URL is escaped in a password: %2F for /, %40 for @, %23 for #." : "";
}
