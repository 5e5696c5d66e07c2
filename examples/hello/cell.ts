// A cell as a model would write it: two tools at once, a line of output, a value.
interface Weather {
  city: string;
  celsius: number;
}

const [weather, { greeting }] = await Promise.all([
  tools.weather({ city: "Lisbon" }) as Promise<Weather>,
  tools.greet({ name: "Ada" }) as Promise<{ greeting: string }>,
]);

text(`${greeting} It is ${weather.celsius} °C in ${weather.city}.`);

return { city: weather.city, fahrenheit: weather.celsius * 1.8 + 32 };
