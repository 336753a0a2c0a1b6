import { describe, expect, test } from "vitest";
import { isPublicAddress, publicTarget } from "./public-address.ts";

const refused = {
  loopback: ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "0:0:0:0:0:ffff:7f00:1"],
  unspecified: ["0.0.0.0", "::"],
  private: [
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "fd00::1",
    "fc00::1",
    "::ffff:10.0.0.1",
  ],
  "link-local": ["169.254.1.1", "fe80::1", "fe80::1%eth0"],
  "metadata services": [
    "169.254.169.254",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
  ],
  "shared and reserved": [
    "100.64.0.1",
    "198.18.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "2001:db8::1",
  ],
  multicast: ["224.0.0.1", "ff02::1"],
  "ways into IPv4": ["64:ff9b::7f00:1", "2002:7f00:1::1", "2001:0:4136:e378::1", "::127.0.0.1", "::7f00:1"],
  "no address": ["", "localhost", "999.1.1.1"],
};

describe.each(Object.entries(refused))("%s", (_, addresses) => {
  test.each(addresses)("%j is not public", async (address) => {
    expect(await isPublicAddress(address)).toBe(false);
  });
});

test.each(["1.1.1.1", "8.8.8.8", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450::1"])(
  "%s is public",
  async (a) => {
    expect(await isPublicAddress(a)).toBe(true);
  },
);

describe("the target of a URL", () => {
  const resolve = async (host: string): Promise<string[]> =>
    ({ "good.test": ["1.1.1.1"], "mixed.test": ["1.1.1.1", "10.0.0.1"], "none.test": [] })[host] ?? [
      "127.0.0.1",
    ];

  test("is what its name resolves to", async () => {
    const { url, addresses } = await publicTarget("https://good.test:8443/a?b#c", resolve);
    expect([url.port, addresses]).toEqual(["8443", ["1.1.1.1"]]);
    expect((await publicTarget("http://[2606:4700::1]/", resolve)).addresses).toEqual(["2606:4700::1"]);
  });

  test.each([
    ["file:///etc/passwd", "scheme file: is not http or https"],
    ["ftp://good.test/", "scheme ftp:"],
    ["gopher://good.test/", "scheme gopher:"],
    ["data:text/html,x", "scheme data:"],
    ["javascript:alert(1)", "scheme javascript:"],
    ["http://user:secret@good.test/", "it holds credentials"],
    ["not a url", "it is no URL"],
    ["http://mixed.test/", "10.0.0.1 is not a public address"],
    ["http://none.test/", "its name has no address"],
    ["http://localhost:9200/", "127.0.0.1 is not a public address"],
    ["http://2130706433/", "127.0.0.1 is not"],
    ["http://0x7f.1/", "127.0.0.1 is not"],
    ["http://017700000001/", "127.0.0.1 is not"],
    ["http://127.1/", "127.0.0.1 is not"],
    ["http://[::ffff:a9fe:a9fe]/latest/meta-data", "is not a public address"],
    ["http://metadata.google.internal/", "127.0.0.1 is not"],
  ])("%s is refused", async (url, message) => {
    const opening = publicTarget(url, resolve);
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.not.toThrow("secret");
  });
});
